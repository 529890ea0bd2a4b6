package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// With -split, go test runs each test binary through this program (go test -exec), and this
// program runs a binary of many tests as several processes. All processes of all packages share
// slots, one for each core: bytes in the pipe that slotsVariable names.
const (
	splitVariable = "TESTGATE_SPLIT" // how many tests make a binary one of many
	slotsVariable = "TESTGATE_SLOTS"
)

// split makes a go test command run binaries through this program. The slots are there until end
// is called.
func split(cmd *exec.Cmd, most int) (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "testgate")
	if err != nil {
		return nil, err
	}
	name, pipe, err := makeSlots(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	cmd.Args = slices.Insert(cmd.Args, 2, "-exec="+self)
	cmd.Env = append(os.Environ(), splitVariable+"="+strconv.Itoa(most), slotsVariable+"="+name)
	return func() {
		_ = pipe.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// runSplit runs a test binary, as several processes if it has many tests. It prints their outputs
// one after the other, and returns the exit code of the first one that failed.
func runSplit(binary string, args []string, out io.Writer) (int, error) {
	most, err := strconv.Atoi(os.Getenv(splitVariable))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", splitVariable, err)
	}
	parts, err := divide(binary, args, most)
	if err != nil {
		return 0, err
	}
	var running children
	defer running.passOn()()
	outputs, codes := make([]bytes.Buffer, len(parts)), make([]int, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() {
			if codes[i], err = running.run(binary, append(args[:len(args):len(args)], part...), &outputs[i]); err != nil {
				codes[i] = 1
				fmt.Fprintf(&outputs[i], "run %s: %v\n", binary, err)
			}
		})
	}
	all.Wait()
	code := 0
	for i := range parts {
		if _, err := outputs[i].WriteTo(out); err != nil {
			return 0, err
		}
		if code == 0 {
			code = codes[i]
		}
	}
	return code, nil
}

var listed = regexp.MustCompile(`(?m)^(?:Test|Example|Fuzz)\w*$`)

// divide returns more arguments for each process. A process takes every n-th test, so that
// neighbours, which often take equally long, go to several processes.
func divide(binary string, args []string, most int) (parts [][]string, err error) {
	whole := [][]string{nil}
	chosen := "."
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "-test.run":
			chosen = value
		case "-test.coverprofile", "-test.bench", "-test.fuzz":
			return whole, nil // several processes would write one file
		}
	}
	if strings.Contains(chosen, "/") {
		return whole, nil // the names of subtests would be lost
	}
	output, err := exec.Command(binary, "-test.list", chosen).Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", binary, err)
	}
	tests := listed.FindAllString(string(output), -1)
	if len(tests) <= most {
		return whole, nil
	}
	n := min(2*runtime.NumCPU(), len(tests)) // more than cores: they do not take equally long
	names := make([][]string, n)
	for i, test := range tests {
		names[i%n] = append(names[i%n], test)
	}
	for _, part := range names {
		parts = append(parts, []string{"-test.run=^(" + strings.Join(part, "|") + ")$"})
	}
	return parts, nil
}

// children are the processes that run now.
type children struct {
	mu  sync.Mutex
	all map[*os.Process]bool
}

// passOn passes the signals that go test sends on to the children, until stop is called.
func (c *children) passOn() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			c.mu.Lock()
			for p := range c.all {
				_ = p.Signal(s)
			}
			c.mu.Unlock()
		}
	}()
	return func() { signal.Stop(signals); close(signals) }
}

// run waits for a slot, runs a process and returns its exit code.
func (c *children) run(binary string, args []string, out io.Writer) (int, error) {
	release, err := slot(os.Getenv(slotsVariable))
	if err != nil {
		return 0, err
	}
	defer release()
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	c.mu.Lock()
	if c.all == nil {
		c.all = map[*os.Process]bool{}
	}
	c.all[cmd.Process] = true
	c.mu.Unlock()
	err = cmd.Wait()
	c.mu.Lock()
	delete(c.all, cmd.Process)
	c.mu.Unlock()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return max(failed.ExitCode(), 1), nil
	}
	return 0, err
}

// makeSlots makes a pipe with a byte for each core, in a folder. As long as it is open, programs
// take a byte out of it, and put it back.
func makeSlots(dir string) (name string, pipe *os.File, err error) {
	name = filepath.Join(dir, "slots")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		return "", nil, fmt.Errorf("make a pipe for slots: %w", err)
	}
	if pipe, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
		return "", nil, fmt.Errorf("open the pipe for slots: %w", err)
	}
	_, err = pipe.Write(make([]byte, runtime.NumCPU()))
	return name, pipe, err
}

// slot waits for one of the slots.
func slot(name string) (release func(), err error) {
	pipe, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	one := make([]byte, 1)
	if _, err := pipe.Read(one); err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	return func() {
		_, _ = pipe.Write(one)
		_ = pipe.Close()
	}, nil
}
