package campaign

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/kates-go/kates/bench/internal/report"
	own "github.com/kates-go/kates/bench/internal/usage"
)

// compared are the modules whose versions the report names.
var compared = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

// machine describes this machine, without its names. What the system does not report stays empty.
func machine(ctx context.Context) report.Machine {
	m := report.Machine{
		CPU:      valueOf("/proc/cpuinfo", "model name"),
		Cores:    runtime.NumCPU(),
		OS:       strings.Trim(valueOf("/etc/os-release", "PRETTY_NAME"), `"`),
		Go:       runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Date:     time.Now().UTC().Format(time.DateOnly),
		Versions: versions(ctx),
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		number, _, _ := strings.Cut(strings.TrimSpace(string(kernel)), "-")
		m.OS += ", kernel " + number
	}
	if kb, err := strconv.ParseFloat(strings.TrimSuffix(valueOf("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		m.MemoryGB = kb * 1024 / 1e9
	}
	m.LoadBefore = loadAverage()
	return m
}

// valueOf returns the value of the first line in a file that starts with the key.
func valueOf(path, key string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), key); ok {
			return strings.TrimSpace(strings.TrimLeft(rest, " \t:="))
		}
	}
	return ""
}

func loadAverage() float64 { return own.LoadAverage() }

// versions returns the version of kates, from git, and of the modules that it is compared with.
func versions(ctx context.Context) []string {
	kates := "kates"
	if commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		kates += " " + strings.TrimSpace(string(commit))
	}
	all := []string{kates}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, d := range info.Deps {
		for _, path := range compared {
			if d.Path == path {
				all = append(all, d.Path+" "+d.Version)
			}
		}
	}
	return all
}
