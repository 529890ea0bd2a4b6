package binaries

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// holder is what a lock file says of the process that holds the lock. It is for those who wait and
// decides nothing: the lock itself is the system's.
type holder struct {
	PID      int       `json:"pid"`
	Host     string    `json:"host"`
	Command  string    `json:"command"`
	Since    time.Time `json:"since"`
	Progress string    `json:"progress,omitempty"`
}

// thisProcess is the holder of a lock taken now. Its command has no arguments: they are not for
// the logs of others.
func thisProcess() holder {
	host, _ := os.Hostname()
	return holder{PID: os.Getpid(), Host: host, Command: filepath.Base(os.Args[0]), Since: time.Now()}
}

// write replaces what the file says. Whoever reads meanwhile reads the old text or the new one:
// the new one is one write, and what is left behind it is no part of it. An error is ignored,
// because nothing but messages depends on the text.
func (h holder) write(f *os.File) {
	text, err := json.Marshal(h)
	if err != nil {
		return
	}
	text = append(text, '\n')
	if _, err := f.WriteAt(text, 0); err == nil {
		_ = f.Truncate(int64(len(text)))
	}
}

// readHolder returns what the file says, or the zero holder if it says nothing that is understood:
// the holder has not written it yet, or an older version of this package holds the lock.
func readHolder(f *os.File) (h holder) {
	const most = 1 << 16 // far more than a holder writes
	if err := json.NewDecoder(io.NewSectionReader(f, 0, most)).Decode(&h); err != nil || h.PID <= 0 {
		return holder{}
	}
	return h
}

// String says who it is, since when, and how far it is.
func (h holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	where := ""
	host, _ := os.Hostname()
	if h.Host != host {
		where = " on " + h.Host
	}
	text := fmt.Sprintf("process %d%s (%s), which has held the lock since %s",
		h.PID, where, h.Command, h.Since.Local().Format(time.TimeOnly))
	if where == "" && errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH) {
		return text + " and has been killed; the build that it began has not ended"
	}
	if h.Progress != "" {
		text += ": " + h.Progress
	}
	return text
}
