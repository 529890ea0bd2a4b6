package stream

import (
	"context"
	"unsafe"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// streamKey tells streams apart: equal keys share a stream.
type streamKey struct {
	resource, kind            string // group/version/resource, group/version/kind
	namespaced                bool
	namespace, labels, fields string
	anyOf, shard              string
	form                      object.Form
	transform                 unsafe.Pointer // the function value; nil for none
}

func keyOf(r object.Resource, spec object.Spec) streamKey {
	if !r.Namespaced {
		spec.Namespace = ""
	}
	return streamKey{
		resource: r.GroupVersion().String() + "/" + r.GroupVersionResource.Resource,
		kind:     r.Kind.GroupVersion().String() + "/" + r.Kind.Kind, namespaced: r.Namespaced,
		namespace: spec.Namespace, labels: spec.LabelSelector(), fields: spec.FieldSelector(),
		anyOf: spec.Alternatives(), shard: spec.Shard.Key(), form: spec.Form, transform: object.FuncPointer(spec.Transform),
	}
}

// shape is what a stream selects, and the form in which it holds it. It never changes, and needs
// no lock.
type shape struct {
	key       streamKey
	resource  object.Resource
	selector  object.Judge
	name      string           // the only name that is selected; "" for all
	transform object.Transform // changes what is stored; nil for none
	base      object.Form      // the form without what it keeps
	keep      *project.Keep    // the fields that are held; nil for all
	source    source.Source
	packer    source.Packer // packs the source's objects; nil: it cannot
	config    *Config
	step      *watchdog.Pulse // of the stream's reflector, without requests
	sharding  *sharding       // nil where no share is asked for
}

func newShape(r object.Resource, spec object.Spec, key streamKey, c *Config) shape {
	lockorder.CallOut("Config.Source")
	base, _ := key.form.Parts()
	s := shape{
		base: base, keep: key.form.Kept(), name: spec.OnlyName(),
		key: key, resource: r, selector: object.NewJudge(r, spec), transform: spec.Transform,
		source: c.Source(r, key.namespace, key.form), config: c, step: &watchdog.Pulse{},
	}
	s.share()
	s.packer, _ = s.source.(source.Packer)
	if spec.Shard.String() != "" {
		s.sharding = &sharding{}
		s.source = &shardedSource{s.source, spec.Shard, s.sharding}
	}
	return s
}

// covers reports whether an object of that name can be in the stream's query.
func (s *shape) covers(key object.Key) bool {
	return (s.key.namespace == "" || s.key.namespace == key.Namespace) && (s.name == "" || s.name == key.Name) &&
		s.selector.Shard.HasNamespace(key.Namespace)
}

// lost reports whether err makes it certain that there is nothing left to watch. It may ask the
// server.
func (s *shape) lost(ctx context.Context, err error) bool {
	suspect := object.Misplaced(err) || apierrors.IsForbidden(err) && s.key.namespace != ""
	if s.config.Gone == nil || !suspect {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, source.OpenTimeout)
	defer cancel()
	return s.config.Gone(ctx, s.resource, s.key.namespace, err)
}

// whole reports whether the stream has all objects of its resource.
func (s *shape) whole() bool {
	return s.key.labels == "" && s.key.fields == "" && s.key.anyOf == "" && s.key.shard == ""
}

// matches reports whether an object that the server has sent is in the stream's query. The server
// has judged the fields already, but for those of alternatives. The labels of an object that does
// not decode may not be known: there its judgement stands.
func (s *shape) matches(o object.Object) bool {
	if !s.ours(o) {
		return false
	}
	if in, _ := s.selector.BySelection(o, nil); !in {
		return false
	}
	in, _ := s.selector.ByAlternatives(o, s.selector.Read)
	return in
}

// selects reports whether an object that this client wrote is in the stream's query, and
// whether that is certain.
func (s *shape) selects(o object.Object) (selected, certain bool) {
	return s.selector.Selects(o, s.selector.Read)
}
