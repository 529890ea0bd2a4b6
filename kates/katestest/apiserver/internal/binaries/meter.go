package binaries

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// meterPause is how often the meter tells how far the build is.
	meterPause = 15 * time.Second
	// meterKeeps is how many of the last messages an error has.
	meterKeeps = 20
)

// meter is where `go build -v` writes to. It counts the packages that are compiled and the modules
// that are downloaded. All other lines are messages. It passes them on at once, and keeps the last
// ones for the error.
type meter struct {
	to    io.Writer
	note  func(string) // hears what the meter tells, too
	begun time.Time

	mu       sync.Mutex
	line     []byte // begun, without its end
	modules  int
	total    int             // packages of the build, 0 until they are counted
	missing  map[string]bool // those of them that are not compiled
	messages []string
}

// newMeter returns a meter that writes to to. Note may be nil.
func newMeter(to io.Writer, note func(string)) *meter {
	if note == nil {
		note = func(string) {}
	}
	return &meter{to: to, note: note, begun: time.Now()}
}

// expect says how many packages the build has, and which of them are to be compiled. The meter
// tells it at once.
func (m *meter) expect(total int, missing []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total, m.missing = total, map[string]bool{}
	for _, path := range missing {
		m.missing[path] = true
	}
	m.printProgress()
}

// start begins to tell how far the build is, one line each meterPause. Its own clock makes it tell
// that the build goes on while the linker, which says nothing, takes a minute. The goroutine ends
// with the returned function.
func (m *meter) start() (stop func()) {
	tick := time.NewTicker(meterPause)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				m.mu.Lock()
				m.printProgress()
				m.mu.Unlock()
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// printProgress writes one line, for terminals and logs alike. The caller holds mu.
func (m *meter) printProgress() {
	state := m.state()
	fmt.Fprintf(m.to, "  after %s: %s\n", time.Since(m.begun).Round(time.Second), state)
	m.note(state)
}

// state says how much of how much is built.
func (m *meter) state() string {
	var parts []string
	if m.modules > 0 {
		parts = append(parts, fmt.Sprintf("%s modules downloaded", grouped(m.modules)))
	}
	switch built := m.total - len(m.missing); {
	case m.total == 0:
		parts = append(parts, "counting the packages")
	case built == m.total:
		parts = append(parts, fmt.Sprintf("all %s packages built, linking", grouped(m.total)))
	default:
		parts = append(parts, fmt.Sprintf("%s of %s packages built", grouped(built), grouped(m.total)))
	}
	return strings.Join(parts, ", ")
}

// grouped writes 1873 as 1,873.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Write takes any part of the output.
func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line = append(m.line, p...)
	for {
		line, rest, whole := bytes.Cut(m.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		m.take(string(line))
		m.line = rest
	}
}

func (m *meter) take(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		m.modules++
	case line != "" && !strings.ContainsAny(line, " \t:"): // a package's path
		delete(m.missing, line)
	default:
		fmt.Fprintln(m.to, line)
		m.messages = append(m.messages[max(0, len(m.messages)+1-meterKeeps):], line)
	}
}

// explained adds the last messages to the error of the build.
func (m *meter) explained(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := append(m.messages, string(m.line))
	if text := strings.TrimSpace(strings.Join(said, "\n")); text != "" {
		return fmt.Errorf("%w:\n%s", err, text)
	}
	return err
}
