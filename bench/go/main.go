// The same workloads on goroutines, for the table of `./dev bench fibers`. Called as `go_fibers MODE [COUNT]`, measures
// once and prints lines of "metric<TAB>value"; GOMAXPROCS says on how many threads.
//
// Where Go offers several ways the cheapest was taken: a WaitGroup to join, and goroutines to be canceled that wait for
// nothing but their context. (Ours wait on a channel and are canceled there; in Go that would be a select, which makes
// the cancel half as slow again.)
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// CPU time of the process, by the same clock as the C programs.
func cpuNs() int64 {
	const clockProcessCPU = 2
	var spec syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPU, uintptr(unsafe.Pointer(&spec)), 0)
	return spec.Nano()
}

var wallStart = time.Now()

func wallNs() int64 {
	return int64(time.Since(wallStart))
}

func show(metric string, value float64) {
	fmt.Printf("%s\t%.4f\n", metric, value)
}

func rss() int64 {
	var total, resident int64
	text, _ := os.ReadFile("/proc/self/statm")
	fmt.Sscan(string(text), &total, &resident)
	return resident * int64(os.Getpagesize())
}

func runYield(count int) {
	var group sync.WaitGroup
	each := count / 2
	start := cpuNs()
	for i := 0; i < 2; i++ {
		group.Add(1)
		go func() {
			for left := each; left > 0; left-- {
				runtime.Gosched()
			}
			group.Done()
		}()
	}
	group.Wait()
	show("yield", float64(cpuNs()-start)/float64(each*2))
}

func runForkOne(count int) {
	var group sync.WaitGroup
	start := int64(0)
	for i := -1000; i < count; i++ {
		if i == 0 {
			start = cpuNs()
		}
		group.Add(1)
		go group.Done()
		group.Wait()
	}
	show("fork_one", float64(cpuNs()-start)/float64(count))
}

func runForkBatch(count int) {
	var group sync.WaitGroup
	start := int64(0)
	for batch := -10; batch < count/1000; batch++ {
		if batch == 0 {
			start = cpuNs()
		}
		for i := 0; i < 1000; i++ {
			group.Add(1)
			go group.Done()
		}
		group.Wait()
	}
	show("fork_batch", float64(cpuNs()-start)/float64(count))
}

func chanPair(count int, clock func() int64) float64 {
	there, back := make(chan uintptr), make(chan uintptr)
	each := count / 2
	go func() {
		for left := each + 1000; left > 0; left-- {
			back <- <-there
		}
	}()
	start := int64(0)
	for i := -1000; i < each; i++ {
		if i == 0 {
			start = clock()
		}
		there <- 1
		<-back
	}
	return float64(clock()-start) / float64(each*2)
}

func runChan(count int) {
	show("chan", chanPair(count, cpuNs))
}

func runChanWall(count int) {
	show("chan", chanPair(count, wallNs))
}

func runMem(count int) {
	var started int64
	never := make(chan int)
	before := rss()
	start := cpuNs()
	for i := 0; i < count; i++ {
		go func() {
			atomic.AddInt64(&started, 1)
			<-never
		}()
	}
	for atomic.LoadInt64(&started) < int64(count) {
		runtime.Gosched()
	}
	show("create_s", float64(cpuNs()-start)/1e9)
	show("rss", float64(rss()-before)/float64(count))
	os.Exit(0)
}

func sleepAll(count int, span time.Duration) float64 {
	var group sync.WaitGroup
	start := wallNs()
	group.Add(count)
	for i := 0; i < count; i++ {
		go func() {
			time.Sleep(span)
			group.Done()
		}()
	}
	group.Wait()
	return float64(wallNs()-start) / 1e6
}

func runSleep(count int) {
	show("cold_ms", sleepAll(count, 10*time.Millisecond))
	show("warm_ms", sleepAll(count, 10*time.Millisecond))
}

// Waits until all goroutines are parked, cancels, and waits for all of them.
func cancelMeasure(cancel func(), started *int64, count int, group *sync.WaitGroup) {
	for atomic.LoadInt64(started) < int64(count) {
		runtime.Gosched()
	}
	runtime.Gosched()
	start := cpuNs()
	cancel()
	marked := cpuNs()
	group.Wait()
	show("cancel_ms", float64(cpuNs()-start)/1e6)
	show("mark_ms", float64(marked-start)/1e6)
}

func parkUntilCanceled(ctx context.Context, started *int64, group *sync.WaitGroup) {
	atomic.AddInt64(started, 1)
	<-ctx.Done()
	group.Done()
}

func runCancelTree(count int) {
	const each = 1000
	var started int64
	var group sync.WaitGroup
	root, cancel := context.WithCancel(context.Background())
	for i := 0; i < count/each; i++ {
		group.Add(1)
		go func() {
			var kids sync.WaitGroup
			ctx, release := context.WithCancel(root)
			kids.Add(each)
			for j := 0; j < each; j++ {
				go parkUntilCanceled(ctx, &started, &kids)
			}
			kids.Wait()
			release()
			group.Done()
		}()
	}
	cancelMeasure(cancel, &started, count, &group)
}

func runCancelFlat(count int) {
	var started int64
	var group sync.WaitGroup
	root, cancel := context.WithCancel(context.Background())
	group.Add(count)
	for i := 0; i < count; i++ {
		go parkUntilCanceled(root, &started, &group)
	}
	cancelMeasure(cancel, &started, count, &group)
}

func runDump(count int) {
	var started int64
	never := make(chan int)
	for i := 0; i < count; i++ {
		go func() {
			atomic.AddInt64(&started, 1)
			<-never
		}()
	}
	for atomic.LoadInt64(&started) < int64(count) {
		runtime.Gosched()
	}
	text := make([]byte, 1024*count)
	runtime.Stack(text, true) // the first one faults the buffer in
	start := wallNs()
	runtime.Stack(text, true)
	show("dump_ms", float64(wallNs()-start)/1e6)
}

func tree(below int) {
	if below == 0 {
		return
	}
	var kids sync.WaitGroup
	kids.Add(2)
	for i := 0; i < 2; i++ {
		go func() {
			tree(below - 1)
			kids.Done()
		}()
	}
	kids.Wait()
}

func runTree(depth int) {
	tree(depth)
	start := wallNs()
	tree(depth)
	show("tree", float64(wallNs()-start)/float64(int(2)<<depth-1))
}

var sink uint64

func work() uint64 {
	chain := uint64(1)
	for i := 0; i < 600; i++ {
		chain = chain*6364136223846793005 + 1442695040888963407
	}
	return chain
}

func runWork(count int) {
	var group sync.WaitGroup
	start := int64(0)
	for batch := -20; batch < count/1000; batch++ {
		if batch == 0 {
			start = wallNs()
		}
		group.Add(1000)
		for i := 0; i < 1000; i++ {
			go func() {
				if work() == 0 {
					atomic.AddUint64(&sink, 1)
				}
				group.Done()
			}()
		}
		group.Wait()
	}
	show("work", float64(wallNs()-start)/float64(count))
}

func runSleep50(count int) {
	show("ms", sleepAll(count, 100*time.Millisecond))
}

func runSleep3(count int) {
	show("ms", sleepAll(count, time.Second))
}

func runSleep100(count int) {
	show("ms", sleepAll(count, 10*time.Millisecond))
}

var modes = map[string]struct {
	run   func(count int)
	count int
}{
	"yield":       {runYield, 2000000},
	"fork_one":    {runForkOne, 200000},
	"fork_batch":  {runForkBatch, 500000},
	"chan":        {runChan, 500000},
	"chan_wall":   {runChanWall, 500000},
	"mem":         {runMem, 100000},
	"sleep":       {runSleep, 100000},
	"cancel_tree": {runCancelTree, 100000},
	"cancel_flat": {runCancelFlat, 100000},
	"dump":        {runDump, 10000},
	"tree":        {runTree, 18},
	"work":        {runWork, 100000},
	"sleep50":     {runSleep50, 50},
	"sleep3":      {runSleep3, 3},
	"sleep100":    {runSleep100, 100},
}

func main() {
	name, count := "", 0
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	if len(os.Args) > 2 {
		count, _ = strconv.Atoi(os.Args[2])
	}
	mode, found := modes[name]
	if !found {
		fmt.Fprintf(os.Stderr, "go_fibers: no mode '%s'\n", name)
		os.Exit(2)
	}
	if count <= 0 {
		count = mode.count
	}
	mode.run(count)
}
