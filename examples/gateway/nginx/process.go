package nginx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// master returns the process of nginx' master, or 0 if there is none. It is cheap.
func (n *Nginx) master() int {
	text, err := os.ReadFile(n.path("nginx.pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return 0
	}
	// The number may be another process' by now. A master shows its command.
	title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if errors.Is(err, os.ErrNotExist) && exists("/proc/self") {
		return 0
	}
	if err == nil && !bytes.Contains(title, []byte("master process")) {
		return 0
	}
	if err == nil && !n.options.External && !bytes.Contains(title, []byte(n.path("nginx.conf"))) {
		return 0
	}
	return pid
}

// Alive reports whether nginx runs. It is cheap. If it does not, Apply starts it again.
func (n *Nginx) Alive() bool { return n.master() != 0 }

// start starts nginx with nginx.conf. It is in a session of its own, so it outlives the gateway.
func (n *Nginx) start(ctx context.Context, hash string) error {
	n.dismissOrphans()
	n.remove(controlSocket) // of a master that was killed
	output := os.Stderr
	if n.render.ErrorLog != "stderr" {
		file, err := os.OpenFile(n.render.ErrorLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("start nginx: %w", err)
		}
		defer file.Close()
		output = file
	}
	cmd := exec.Command(n.found.binary, "-e", "stderr", "-c", n.path("nginx.conf"), "-g", "daemon off;")
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	ended := make(chan struct{})
	go func() { // ends with nginx
		defer close(ended)
		_ = cmd.Wait()
	}()
	if err := n.wait(ctx, hash, ended); err != nil {
		dismiss(cmd.Process.Pid, ended)
		return fmt.Errorf("start nginx: %w", err)
	}
	return nil
}

// stopsWithin is how long a master may take to end its workers at once.
const stopsWithin = 5 * time.Second

// dismiss ends a master that has just started, and all of its workers: none of them must serve
// later on, when nobody expects it. Workers of a master that is killed would.
func dismiss(master int, ended <-chan struct{}) {
	_ = syscall.Kill(master, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(stopsWithin):
	}
	_ = syscall.Kill(-master, syscall.SIGKILL) // all of its session that are left
	<-ended
}

// dismissOrphans has workers of a killed master finish, and close their listening sockets, so that
// another master can listen there. It reports whether there are any.
func (n *Nginx) dismissOrphans() (found bool) {
	text, _ := os.ReadFile(n.path("nginx.pid"))
	defer n.remove("nginx.pid")
	master := strings.TrimSpace(string(text))
	if master == "" {
		return false
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// After the command, in parentheses: state, parent, group.
		words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		title, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if len(words) < 3 || words[2] != master || !bytes.HasPrefix(title, []byte("nginx: ")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			n.log.Warn("nginx' master was killed: its workers finish their requests", "worker", pid)
			found = syscall.Kill(pid, syscall.SIGQUIT) == nil || found
		}
	}
	return found
}

// wait waits until nginx says that it has a configuration. ended, if not nil, is closed if it
// ends.
func (n *Nginx) wait(ctx context.Context, hash string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, n.options.ReloadTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		v, err := n.control.version(ctx)
		if err == nil && v.hash == hash {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ended:
			return fmt.Errorf("it has ended: %s", n.complaint())
		case <-ctx.Done():
			if last == nil {
				last = errors.New("it still has another one")
			}
			return fmt.Errorf("it does not have its configuration after %s: %w: %s", n.options.ReloadTimeout, last, n.complaint())
		}
	}
}

// complaint returns what nginx has logged last as an emergency.
func (n *Nginx) complaint() string {
	const otherwise = "its error log says why"
	if n.render.ErrorLog == "stderr" {
		return otherwise
	}
	file, err := os.Open(n.render.ErrorLog)
	if err != nil {
		return otherwise
	}
	defer file.Close()
	if end, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, end-8192), io.SeekStart)
	}
	text, _ := io.ReadAll(file)
	lines := strings.Split(string(text), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Contains(lines[i], "[emerg]") {
			return clean(lines[i])
		}
	}
	return otherwise
}

// threadOf is what nginx' messages begin with: its process and thread.
var threadOf = regexp.MustCompile(`^\d+#\d+: `)

// check has nginx check a configuration. message is why it refuses it; empty if it does not.
// nginx opens the sockets of what it checks, for a moment, and accepts nothing: a connection that
// comes then is reset where there is no other nginx that listens.
func (n *Nginx) check(ctx context.Context, text []byte) (message string, err error) {
	path := n.path("candidate.conf")
	if err := write(path, text); err != nil {
		return "", fmt.Errorf("write a configuration: %w", err)
	}
	n.note(func(s *Stats) { s.Checks++ })
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, n.found.binary, "-t", "-q", "-e", "stderr", "-c", path).CombinedOutput()
	if err == nil {
		return "", nil
	}
	var exit *exec.ExitError
	for line := range strings.Lines(string(out)) {
		if _, after, ok := strings.Cut(line, "[emerg] "); ok && errors.As(err, &exit) {
			return clean(strings.TrimSpace(threadOf.ReplaceAllString(after, ""))), nil
		}
	}
	return "", fmt.Errorf("have nginx check a configuration: %w: %s", err, clean(string(out)))
}

// quit ends nginx: at first it may finish its requests.
func (n *Nginx) quit(ctx context.Context, drain time.Duration) error {
	pid := n.master()
	if pid == 0 {
		return nil
	}
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGQUIT, drain + 5*time.Second}, {syscall.SIGTERM, 10 * time.Second}} {
		if err := syscall.Kill(pid, step.signal); err != nil {
			return fmt.Errorf("end nginx: %w", err)
		}
		if n.gone(ctx, pid, step.wait) {
			return nil
		}
		ctx = context.WithoutCancel(ctx) // the second step takes no time of requests
	}
	return fmt.Errorf("nginx (process %d) does not end", pid)
}

// gone waits until a process is no master any more. If the context ends first, the wait is over.
func (n *Nginx) gone(ctx context.Context, pid int, bound time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n.master() == pid {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return n.master() != pid
		}
	}
	return true
}
