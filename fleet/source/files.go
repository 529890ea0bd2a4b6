package source

import (
	"context"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/fleet"
)

// FileOption configures [Directory].
type FileOption func(*poll)

// WithPoll says how often files are looked at. Default: every 5 seconds. Less than a millisecond
// counts as that.
func WithPoll(every time.Duration) FileOption {
	return func(p *poll) { p.every = max(every, time.Millisecond) }
}

// poll looks at files again and again.
type poll struct {
	every time.Duration
	// trouble is why it cannot be said for certain which clusters there are, or nil.
	trouble atomic.Pointer[error]
}

func newPoll(options ...FileOption) *poll {
	p := &poll{every: 5 * time.Second}
	for _, o := range options {
		o(p)
	}
	return p
}

// Err says why the files cannot be read now. The members stay as they are.
func (p *poll) Err() error {
	if err := p.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// run looks until ctx ends. look returns all members, and whether they are news.
func (p *poll) run(ctx context.Context, set func([]fleet.Member), look func() ([]fleet.Member, bool, error)) error {
	defer p.trouble.Store(nil)
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for said := false; ; {
		members, news, err := look()
		if err != nil {
			p.trouble.Store(&err)
		} else if p.trouble.Store(nil); news || !said {
			set(members)
			said = true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stamp is what tells, without reading it, whether a file has changed.
type stamp struct {
	info fs.FileInfo // nil: there is no file, or it cannot be looked at
	at   time.Time   // when the file was read
}

// unchanged reports whether a file is the same as when it was read. Times of files are not exact,
// so a file that was young then is read once more.
func (s stamp) unchanged(now fs.FileInfo, young time.Duration) bool {
	return s.info != nil && now != nil && os.SameFile(s.info, now) && s.info.Size() == now.Size() &&
		s.info.ModTime().Equal(now.ModTime()) && s.at.Sub(now.ModTime()) > young
}
