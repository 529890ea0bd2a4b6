package consumer

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// cpuSeconds is what this process has used so far, in user and kernel mode.
func cpuSeconds() (float64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, nil
}

// peakBytes is the largest resident size that this process has had. It is not rusage's, which on Linux
// includes the process that forked this one.
func peakBytes() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the peak memory: %w", err)
	}
	return parsePeak(status)
}

func parsePeak(status []byte) (float64, error) {
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kb, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 64)
			if err != nil {
				return 0, fmt.Errorf("read the peak memory: %w", err)
			}
			return kb * 1024, nil
		}
	}
	return 0, fmt.Errorf("read the peak memory: there is no VmHWM in the process's status")
}

// liveBytes is the heap after two collections: the second frees what finalizers and pools of the
// first let go.
func liveBytes() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func allocatedBytes() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.TotalAlloc)
}

// requests records what is asked of the server.
type requests struct {
	mu   sync.Mutex
	made []string
}

// through returns a configuration whose requests are recorded.
func (r *requests) through(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{r, next} })
	return c
}

func (r *requests) soFar() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.made...)
}

type recorder struct {
	requests *requests
	next     http.RoundTripper
}

func (r recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	r.requests.mu.Lock()
	what := q.Method + " " + q.URL.Path
	if w := q.URL.Query().Get("watch"); w == "true" || w == "1" {
		what = "WATCH " + q.URL.Path
	}
	r.requests.made = append(r.requests.made, what)
	r.requests.mu.Unlock()
	return r.next.RoundTrip(q)
}

// WrappedRoundTripper lets client-go find the connections to close.
func (r recorder) WrappedRoundTripper() http.RoundTripper { return r.next }
