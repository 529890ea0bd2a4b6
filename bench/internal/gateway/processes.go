package gateway

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kates-go/kates/bench/internal/usage"
)

// ticks is how many of the kernel's units of CPU time are a second, for programs on Linux.
const ticks = 100

// nginxSeconds returns the CPU time of the nginx in a folder: of its master, of its workers, also
// those that have ended, and of each check of a configuration.
func nginxSeconds(dir string) (float64, error) {
	text, err := os.ReadFile(filepath.Join(dir, "nginx.pid"))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of nginx: %w", err)
	}
	master := strings.TrimSpace(string(text))
	sum, err := usage.ChildrenSeconds() // the checks; the master has not ended
	if err != nil {
		return 0, err
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		sum += secondsOf(stat, filepath.Base(filepath.Dir(path)) == master, master)
	}
	return sum, nil
}

// secondsOf returns the CPU time in a line of /proc/PID/stat: for the master that of its former
// children, too, and for another process 0 unless it is a child of the master.
func secondsOf(stat []byte, isMaster bool, master string) (sum float64) {
	// After the command, in parentheses: state, parent, and from the 12th on utime, stime, cutime,
	// cstime.
	words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(words) < 15 || !isMaster && words[1] != master {
		return 0
	}
	last := 13
	if isMaster {
		last = 15
	}
	for _, word := range words[11:last] {
		n, _ := strconv.ParseFloat(word, 64)
		sum += n / ticks
	}
	return sum
}
