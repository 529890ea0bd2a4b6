package query

import (
	"maps"
	"slices"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// fresh are the references whose streams may have changes. A stream notes each change here at
// once, whether it is worth a signal or not, so the reader need not ask the other streams.
type fresh struct {
	mu  lockorder.Mutex[lockorder.FreshReference] // taken with a stream's lock held, see Noted
	all map[*reference]bool
}

func (f *fresh) note(ref *reference) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ref.gone {
		return
	}
	if f.all == nil {
		f.all = make(map[*reference]bool)
	}
	f.all[ref] = true
}

// forget removes a reference for good.
func (f *fresh) forget(ref *reference) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref.gone = true
	delete(f.all, ref)
}

func (f *fresh) take() map[*reference]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.all
	f.all = nil
	return all
}

// now returns the references, and keeps them.
func (f *fresh) now() []*reference {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.all))
}
