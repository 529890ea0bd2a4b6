// Package usage measures its own process: CPU time, memory, and profiles of both. It also reads
// the load of the machine.
package usage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
)

// CPUSeconds returns the CPU time of this process so far, in user and kernel mode.
func CPUSeconds() (float64, error) { return secondsOf(syscall.RUSAGE_SELF) }

// ChildrenSeconds returns the CPU time of the processes that this one has started, and that have
// ended.
func ChildrenSeconds() (float64, error) { return secondsOf(syscall.RUSAGE_CHILDREN) }

func secondsOf(who int) (float64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, nil
}

// PeakBytes returns the largest resident size of this process so far. It does not use rusage,
// which on Linux includes the process that forked this one.
func PeakBytes() (float64, error) {
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

// ResidentBytes returns the resident size of this process, 0 on a system without /proc.
func ResidentBytes() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(text); len(fields) > 1 {
		pages, _ := strconv.ParseFloat(string(fields[1]), 64)
		return pages * float64(os.Getpagesize())
	}
	return 0
}

// LoadAverage returns the load of the machine in the last minute, or 0 if the system does not
// report it.
func LoadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// WaitedSeconds returns for how long the threads of this process could run and had no CPU, or 0 if
// the system does not report it. Threads that have ended do not count.
func WaitedSeconds() (sum float64) {
	threads, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, path := range threads {
		text, _ := os.ReadFile(path) // a thread may end meanwhile
		if fields := bytes.Fields(text); len(fields) > 1 {
			ns, _ := strconv.ParseFloat(string(fields[1]), 64)
			sum += ns / 1e9
		}
	}
	return sum
}

// LiveBytes returns the heap after two collections. The second one frees what finalizers and
// pools released in the first.
func LiveBytes() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// AllocatedBytes returns what the process has allocated on the heap so far.
func AllocatedBytes() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.TotalAlloc)
}

// Allocations returns how often the process has allocated something on the heap so far.
func Allocations() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Mallocs)
}

// Profile is a CPU profile from its start, and a heap profile at its end. The zero value has not
// started. Only one goroutine uses its methods.
type Profile struct {
	path string
	cpu  *os.File
}

// Start begins a profile. It goes to the files path.cpu and path.heap.
func (p *Profile) Start(path string) error {
	if p.cpu != nil {
		return errors.New("one is under way")
	}
	f, err := os.Create(path + ".cpu")
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	p.path, p.cpu = path, f
	return nil
}

// End writes what Start began.
func (p *Profile) End() error {
	if p.cpu == nil {
		return errors.New("none was started")
	}
	cpu := p.cpu
	p.cpu = nil
	pprof.StopCPUProfile()
	if err := cpu.Close(); err != nil {
		return err
	}
	LiveBytes() // a heap profile shows the state at the last collection
	f, err := os.Create(p.path + ".heap")
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}
