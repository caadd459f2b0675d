package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// serve starts the server on a free port of this machine, with the arguments that the file has, and gives its address and
// what ends it.
func serve(program, config string) (string, func(), error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()

	arguments := []string{"--port", fmt.Sprint(port)}
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "#") {
			arguments = append(arguments, strings.Fields(line)...)
		}
	}
	log, err := os.Create(filepath.Join(filepath.Dir(program), "server.log"))
	if err != nil {
		return "", nil, err
	}
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "TEMPORAL_VERSION_CHECK_DISABLED=1") // it asks nobody outside
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", port), func() {
		command.Process.Kill()
		command.Wait()
	}, nil
}
