package loops

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// ports remembers where nginx cannot listen. The loop of the configuration writes it, and the
// reports read it. Who has a port may give it back: it is tried again from time to time.
type ports struct {
	mu    sync.Mutex
	taken []nginx.Taken
	next  time.Time // when they are tried again
}

func (p *ports) now() []nginx.Taken {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// due reports whether it is time to try again.
func (p *ports) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.taken) > 0 && !time.Now().Before(p.next)
}

// setTaken notes where nginx cannot listen: there alone if all were tried, and there, too, if not.
// It is an error if the configuration did without these already: the next one would be the same.
func (p *ports) setTaken(taken []nginx.Taken, all bool) (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.taken
	if all {
		p.taken = nil
	}
	news := slices.DeleteFunc(slices.Clone(taken), func(one nginx.Taken) bool {
		return slices.ContainsFunc(p.taken, func(had nginx.Taken) bool { return had.Address == one.Address && had.Port == one.Port })
	})
	if len(news) == 0 {
		return false, fmt.Errorf("the configuration has nothing there any more, but %s", taken[0].Message)
	}
	p.taken = append(slices.Clip(p.taken), news...)
	p.next = time.Now().Add(takenInterval)
	return !slices.Equal(before, p.taken), nil
}

// free notes that nginx listens everywhere. It reports whether that is new.
func (p *ports) free() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := len(p.taken) > 0
	p.taken = nil
	return had
}
