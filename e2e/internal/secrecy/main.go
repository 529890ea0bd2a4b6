package secrecy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// listening is the environment variable of the process that listens.
const listening = "KATES_E2E_LISTENS"

// Main runs the body of a TestMain, and returns its code, or 1 if a secret was said. It may be
// called once.
func Main(run func() int) int {
	if dir := os.Getenv(listening); dir != "" {
		return listen(dir)
	}
	l, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "listen for secrets:", err)
		return 1
	}
	code := run()
	shut()
	if err := l.end(); err != nil {
		fmt.Fprintln(os.Stderr, "listen for secrets:", err)
		return max(code, 1)
	}
	return code
}

// listener is the process that listens, as the run sees it.
type listener struct {
	process *exec.Cmd
	own     [2]int // standard output and standard error, as they were
}

// start makes the folder and the listener, and directs standard output and standard error to it.
func start() (*listener, error) {
	dir, err := os.MkdirTemp("", "kates-secrecy-*")
	if err == nil {
		err = open(dir)
	}
	if err != nil {
		return nil, err
	}
	l := &listener{process: exec.Command(os.Args[0])}
	l.process.Env = append(os.Environ(), listening+"="+dir)
	l.process.Stdout, l.process.Stderr = os.Stdout, os.Stderr
	var ends [2]*os.File
	for i := range ends {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer func() { _, _ = read.Close(), write.Close() }()
		l.process.ExtraFiles = append(l.process.ExtraFiles, read)
		ends[i] = write
	}
	if err := l.process.Start(); err != nil {
		return nil, err
	}
	for i, write := range ends {
		if l.own[i], err = unix.FcntlInt(uintptr(i+1), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.Dup2(int(write.Fd()), i+1)
		}
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// end gives standard output and standard error back, and waits for what the listener has found.
func (l *listener) end() error {
	for i, own := range l.own {
		if err := unix.Dup2(own, i+1); err != nil {
			return err
		}
		_ = unix.Close(own)
	}
	return l.process.Wait()
}

// listen is the listener. It lives as long as anybody has the other ends: a run that panics, or is
// killed, is heard to its last word.
func listen(dir string) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT) // they are for the run
	defer func() { _ = os.RemoveAll(dir) }()
	var copies sync.WaitGroup
	failed := make([]error, 2)
	for i, to := range []*os.File{os.Stdout, os.Stderr} {
		copies.Go(func() {
			from := os.NewFile(uintptr(3+i), "the run")
			kept, err := appending(dir, []string{outFile, errFile}[i])
			if err == nil {
				_, err = io.Copy(io.MultiWriter(kept, to), from)
			}
			failed[i] = err
			_, _ = io.Copy(io.Discard, from) // otherwise the run would block
		})
	}
	copies.Wait()
	wrong, err := judge(dir)
	for _, line := range wrong {
		fmt.Fprintln(os.Stderr, "secrecy:", line)
	}
	if err = errors.Join(append(failed, err)...); err != nil {
		fmt.Fprintln(os.Stderr, "secrecy:", err)
	}
	if len(wrong) > 0 || err != nil {
		return 1
	}
	return 0
}
