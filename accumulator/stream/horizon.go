package stream

import "github.com/kates-go/kates/coherence"

// Horizon returns, for each stored resource that is watched, the newest version that a watch has
// shown or an own write was answered with. Whatever happens to an object later has a newer one.
func (s *Set) Horizon() map[string]string {
	s.mu.Lock()
	streams := make([]*stream, 0, len(s.streams))
	newest := make(map[string]string)
	for _, st := range s.streams {
		streams = append(streams, st)
		newest[st.resource.Storage] = s.journal.Floor(st.resource.Storage)
	}
	s.mu.Unlock()
	for _, st := range streams {
		st.mu.Lock()
		position := st.store.view.Position()
		st.mu.Unlock()
		newest[st.resource.Storage] = coherence.Newest(newest[st.resource.Storage], position)
	}
	return newest
}
