package streamset

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// A stream of all objects of a resource, in one namespace or in all, can serve a query that selects
// some of them, or wants their metadata alone ([stream.Config].Share). The listener of such a query
// is narrow: it has an [audience.Part].
//
// The rule: the stream runs without trouble, nothing transforms its objects, and what the listener
// selects can be judged here for certain, by labels, name and namespace. Objects that others name
// have streams of their own: they may be many, and each listener costs the stream something.

// wider returns a stream that can serve what a key's own stream would, and the part of it; nil if
// there is none. Called with mu held.
func (s *Set) wider(r object.Resource, spec object.Spec, key intake.Key, o stream.ListenOptions) (*member, *audience.Part) {
	if !s.shared.Share || o.From == stream.Own || spec.Transform != nil || spec.Where != nil || spec.Valid != nil || !judges(spec) {
		return nil, nil
	}
	for _, st := range s.over(r.Storage) {
		if !st.Contains(key) || !st.TakesPart() {
			continue
		}
		return s.streams[st.Key], audience.NewPart(r, spec, key.Namespace, key.Form != st.Key.Form)
	}
	return nil, nil
}

// judges reports whether it can be judged here for certain what a query selects, whatever the
// object.
func judges(spec object.Spec) bool {
	for _, q := range append(slices.Clip(spec.AnyOf), spec.Selection) {
		if q.Fields != nil && slices.ContainsFunc(q.Fields.Requirements(), func(r fields.Requirement) bool { return !ofMetadata(r) }) {
			return false
		}
	}
	return true
}

func ofMetadata(r fields.Requirement) bool {
	return r.Field == "metadata.name" || r.Field == "metadata.namespace"
}
