package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often a waiting builder tries again. A lock is held for minutes.
const lockPoll = 100 * time.Millisecond

// held is an exclusive lock on a file.
//
// The system releases the lock when all processes have ended that have the file open. A build
// inherits it: if the process that began the build is killed, the next one waits until the build
// has ended, too. So two builds of one entry never run at once.
type held struct{ file *os.File }

// lock takes the exclusive lock on the file path, which it creates. It waits as long as ctx
// allows, and calls waiting before. The file stays: if it were removed, two processes could lock
// two files of one name.
func lock(ctx context.Context, path string, waiting func()) (held, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return held{}, fmt.Errorf("lock the cache of API server binaries (KATES_CACHE sets another one): %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for first := true; ; first = false {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return held{f}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return held{}, fmt.Errorf("lock %s: %w", path, err)
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return held{}, fmt.Errorf("wait for another build of the API server binaries: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// release unlocks the file, also for what has inherited it.
func (h held) release() {
	_ = syscall.Flock(int(h.file.Fd()), syscall.LOCK_UN)
	_ = h.file.Close()
}
