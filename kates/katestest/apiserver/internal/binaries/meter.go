package binaries

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// meterPause is how often the meter tells how far the build is.
	meterPause = 15 * time.Second
	// meterKeeps is how many of the last messages an error has.
	meterKeeps = 20
)

// meter is where `go build -v` writes to. It counts the packages that are compiled and the modules
// that are downloaded, and tells the counts now and then: there are more than a thousand. All
// other lines are messages. It passes them on at once, and keeps the last ones for the error.
type meter struct {
	to                io.Writer
	now               func() time.Time
	begun, told       time.Time
	line              []byte // begun, without its end
	modules, packages int
	messages          []string
}

func newMeter(to io.Writer) *meter {
	m := &meter{to: to, now: time.Now}
	m.begun = m.now()
	m.told = m.begun
	return m
}

// Write takes any part of the output. It is for one goroutine at a time.
func (m *meter) Write(p []byte) (int, error) {
	m.line = append(m.line, p...)
	for {
		line, rest, whole := bytes.Cut(m.line, []byte("\n"))
		if !whole {
			break
		}
		m.take(string(line))
		m.line = rest
	}
	if now := m.now(); now.Sub(m.told) >= meterPause {
		m.told = now
		downloaded := ""
		if m.modules > 0 {
			downloaded = fmt.Sprintf("%d modules downloaded, ", m.modules)
		}
		fmt.Fprintf(m.to, "  after %s: %s%d packages compiled\n", now.Sub(m.begun).Round(time.Second), downloaded, m.packages)
	}
	return len(p), nil
}

func (m *meter) take(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		m.modules++
	case line != "" && !strings.ContainsAny(line, " \t:"): // a package's path
		m.packages++
	default:
		fmt.Fprintln(m.to, line)
		m.messages = append(m.messages[max(0, len(m.messages)+1-meterKeeps):], line)
	}
}

// explained adds the last messages to the error of the build.
func (m *meter) explained(err error) error {
	said := append(m.messages, string(m.line))
	if text := strings.TrimSpace(strings.Join(said, "\n")); text != "" {
		return fmt.Errorf("%w:\n%s", err, text)
	}
	return err
}
