package accumulator

import "github.com/kates-go/kates/internal/object"

// modelVersions are the versions in which the model serves its resources.
var modelVersions = []string{"v1", "v2"}

// inServed returns a resource as discovery says it is served now.
func (m *model) inServed(r object.Resource) object.Resource {
	if r.Version == modelVersions[0] {
		m.truth.Lock()
		r.Version = modelVersions[m.prefer]
		m.truth.Unlock()
	}
	for _, version := range modelVersions {
		if !m.Serves(r.Resource, r.Version) {
			r.Version = version
		}
	}
	return r
}

// serve serves both versions of a resource, or one of them, or prefers another one: who begins
// then gets that, and watches go on.
func (m *model) serve(how int) (done bool) {
	which := how % 6
	if which >= 3 {
		m.truth.Lock()
		defer m.truth.Unlock()
		m.prefer = 1 - m.prefer
		return true
	}
	for i, version := range modelVersions {
		served := which == i || which == len(modelVersions)
		if m.Serves(modelResources[0], version) == served {
			continue
		}
		m.Serve(modelResources[0], version, served)
		done = true
	}
	m.truth.Lock()
	defer m.truth.Unlock()
	m.moved = m.moved || done
	return done
}
