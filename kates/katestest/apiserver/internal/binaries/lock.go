package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// lockPoll is how often a waiting builder tries again. A lock is held for minutes.
	lockPoll = 100 * time.Millisecond
	// lockPause is how often it says for whom it waits.
	lockPause = 30 * time.Second
)

// held is an exclusive lock on a file.
//
// The system releases the lock when all processes have ended that have the file open. A build
// inherits it: if the process that began the build is killed, the next one waits until the build
// has ended, too. So two builds of one entry never run at once.
type held struct {
	file *os.File
	by   holder
}

// lock takes the exclusive lock on the file path, which it creates, and writes into the file who
// holds it. It waits as long as ctx allows. It calls waiting with the holder when it begins to
// wait, and each lockPause from then on. The file stays: if it were removed, two processes could
// lock two files of one name.
func lock(ctx context.Context, path string, waiting func(holder)) (held, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return held{}, fmt.Errorf("lock the cache of API server binaries (KATES_CACHE sets another one): %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	var told time.Time
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			h := held{f, thisProcess()}
			h.writeProgress("")
			return h, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return held{}, fmt.Errorf("lock %s: %w", path, err)
		}
		if now := time.Now(); told.IsZero() || now.Sub(told) >= lockPause {
			told = now
			waiting(readHolder(f))
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return held{}, fmt.Errorf("wait for another build of the API server binaries: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// writeProgress tells those who wait how far the holder is.
func (h held) writeProgress(progress string) {
	h.by.Progress = progress
	h.by.write(h.file)
}

// release unlocks the file, also for what has inherited it.
func (h held) release() {
	_ = h.file.Truncate(0)
	_ = syscall.Flock(int(h.file.Fd()), syscall.LOCK_UN)
	_ = h.file.Close()
}
