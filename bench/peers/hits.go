// Hits of Ristretto and golang-lru, for the table of `./dev bench depot`. Called as `hits FOLDER SECONDS`. FOLDER has the requests that
// `cache draw` wrote. Prints lines of "metric<TAB>value".
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/dgraph-io/ristretto"
	lru "github.com/hashicorp/golang-lru"
)

const (
	keyLen   = 16
	valueLen = 100
	many     = 1000000
	samples  = 3
)

func cpuNs() int64 {
	const clockProcessCPU = 2
	var spec syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPU, uintptr(unsafe.Pointer(&spec)), 0)
	return spec.Nano()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "hits:", err)
	os.Exit(1)
}

func keyOf(number int) string {
	return fmt.Sprintf("user:%011d", number)
}

func read(file string) []string {
	bytes, err := os.ReadFile(file)
	if err != nil {
		fail(err)
	}
	keys := make([]string, len(bytes)/keyLen)
	for i := range keys {
		keys[i] = string(bytes[i*keyLen : (i+1)*keyLen])
	}
	return keys
}

var seen byte

// Nanoseconds per hit of all threads together (processor time, divided by the threads), and the part of the requests that were hits.
func measure(get func(key string) (interface{}, bool), keys []string, threads int, seconds float64) (float64, float64) {
	var group sync.WaitGroup
	counts := make([]int64, threads*16)
	hits := make([]int64, threads*16)
	runtime.GOMAXPROCS(threads)
	from, cpuFrom := time.Now(), cpuNs()
	until := from.Add(time.Duration(seconds * 1e9))
	for i := 0; i < threads; i++ {
		group.Add(1)
		go func(me int) {
			defer group.Done()
			at := me * len(keys) / 2
			var sum byte
			for time.Now().Before(until) {
				for j := 0; j < 1024; j++ {
					if value, ok := get(keys[at]); ok {
						sum += value.([]byte)[0]
						hits[me*16]++
					}
					if at++; at == len(keys) {
						at = 0
					}
				}
				counts[me*16] += 1024
			}
			seen = sum
		}(i)
	}
	group.Wait()
	took := (cpuNs() - cpuFrom) / int64(threads)
	var count, hit int64
	for i := 0; i < threads; i++ {
		count += counts[i*16]
		hit += hits[i*16]
	}
	return float64(took) / float64(count), float64(hit) / float64(count)
}

func rows(folder, name string, seconds float64, get func(key string) (interface{}, bool)) {
	for _, kind := range []string{"hot", "zipf"} {
		keys := read(filepath.Join(folder, kind+".keys"))
		for threads := 1; threads <= 2; threads++ {
			best := 1e18
			for i := 0; i < samples; i++ {
				ns, ratio := measure(get, keys, threads, seconds)
				if ns < best {
					best = ns
				}
				if ratio < 0.99 {
					fmt.Fprintf(os.Stderr, "hits: %s has only %.3f of the keys\n", name, ratio)
				}
			}
			fmt.Printf("hit.%s.%d.%s\t%.2f\n", kind, threads, name, best)
		}
	}
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		fail(err)
	}
	rist, err := ristretto.NewCache(&ristretto.Config{NumCounters: 10 * many, MaxCost: 1 << 32, BufferItems: 64})
	if err != nil {
		fail(err)
	}
	list, err := lru.New(2 * many)
	if err != nil {
		fail(err)
	}
	for i := 0; i < many; i++ {
		value := make([]byte, valueLen)
		list.Add(keyOf(i), value)
		for !rist.Set(keyOf(i), value, valueLen) { // its buffer is full
			time.Sleep(time.Microsecond)
		}
	}
	time.Sleep(time.Second) // it puts behind the caller's back
	rows(os.Args[1], "ristretto", seconds, func(key string) (interface{}, bool) { return rist.Get(key) })
	rows(os.Args[1], "lru", seconds, func(key string) (interface{}, bool) { return list.Get(key) })
}
