package intake

import (
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// Key tells streams apart: equal keys share a stream.
type Key struct {
	Resource, Kind            string // group/version/resource, group/version/kind
	Namespaced                bool
	Namespace, Labels, Fields string
	AnyOf, Shard              string
	Form                      object.Form
	where                     *object.Where
	transform                 *object.Transform
	valid                     object.Valid
}

// KeyOf is the key of the stream that holds what a spec selects of a resource.
func KeyOf(r object.Resource, spec object.Spec) Key {
	if !r.Namespaced {
		spec.Namespace = ""
	}
	return Key{
		Resource: r.GroupVersion().String() + "/" + r.GroupVersionResource.Resource,
		Kind:     r.Kind.GroupVersion().String() + "/" + r.Kind.Kind, Namespaced: r.Namespaced,
		Namespace: spec.Namespace, Labels: spec.LabelSelector(), Fields: spec.FieldSelector(),
		AnyOf: spec.Alternatives(), Shard: spec.Shard.Key(), Form: spec.Form, where: spec.Where, transform: spec.Transform, valid: spec.Valid,
	}
}

// Intake is what a stream selects, and the form in which it holds it. It never changes, and needs
// no lock.
type Intake struct {
	Key       Key
	Resource  object.Resource
	Selector  object.Judge
	name      string            // the only name that is selected; "" for all
	Where     *object.Where     // decides what is stored, beside the selector; nil for all
	Transform *object.Transform // changes what is stored; nil for none
	Valid     object.Valid      // judges what is stored; nil: everything is valid
	originals *originals
	base      object.Form   // the form without what it keeps
	Keep      *project.Keep // the fields that are held; nil for all
	Source    source.Source
	Packer    source.Packer   // packs the source's objects; nil: it cannot
	Step      *watchdog.Pulse // of the stream's reflector, without requests
	sharding  *sharding       // nil where no share is asked for
}

// New makes the intake of a stream, with a source of its own.
func New(r object.Resource, spec object.Spec, key Key, sources source.Sources, budget *Budget) Intake {
	lockorder.CallOut("Config.Source")
	base, _ := key.Form.Parts()
	s := Intake{
		base: base, Keep: key.Form.Kept(), name: spec.OnlyName(),
		Key: key, Resource: r, Selector: object.NewJudge(r, spec), Where: spec.Where, Transform: spec.Transform, Valid: spec.Valid,
		Source: sources(r, key.Namespace, key.Form), Step: &watchdog.Pulse{}, originals: &originals{budget: budget, of: make(map[object.Key]int64)},
	}
	s.receiveOriginals()
	s.shareSource()
	s.Packer, _ = s.Source.(source.Packer)
	if spec.Shard.String() != "" {
		s.sharding = &sharding{}
		s.Source = &shardedSource{s.Source, spec.Shard, s.sharding}
	}
	return s
}

// Covers reports whether an object of that name can be in the stream's query.
func (s *Intake) Covers(key object.Key) bool {
	return (s.Key.Namespace == "" || s.Key.Namespace == key.Namespace) && (s.name == "" || s.name == key.Name) &&
		s.Selector.Shard.HasNamespace(key.Namespace)
}

// Whole reports whether the stream has all objects of its resource.
func (s *Intake) Whole() bool {
	return s.Key.Labels == "" && s.Key.Fields == "" && s.Key.AnyOf == "" && s.Key.Shard == "" && s.Where == nil
}

// Matches reports whether the selectors select an object that the server has sent. The server
// has judged the fields already, but for those of alternatives. The labels of an object that does
// not decode may not be known: there its judgement stands.
func (s *Intake) Matches(o object.Object) bool {
	if !s.inShard(o) {
		return false
	}
	if in, _ := s.Selector.BySelection(o, nil); !in {
		return false
	}
	in, _ := s.Selector.ByAlternatives(o, s.Selector.Read)
	return in
}

// selects reports whether the selectors select an object that this client wrote, and whether that
// is certain.
func (s *Intake) selects(o object.Object) (selected, certain bool) {
	return s.Selector.Selects(o, s.Selector.Read)
}

// ShardStatus says how the stream's share comes about.
func (s *Intake) ShardStatus() string {
	if s.sharding == nil && s.Key.Shard != "" {
		return shardOwned
	}
	return s.sharding.status()
}

// inShard is [object.Judge.InShard] for an object that the server has sent. It notes what the
// server should not have sent.
func (s *Intake) inShard(o object.Object) bool {
	if s.Key.Shard == "" || s.Selector.InShard(o) {
		return true
	}
	if s.sharding != nil {
		s.sharding.foreign.Add(1)
	}
	return false
}

// ListBegins notes that a list begins.
func (s *Intake) ListBegins() { s.sharding.begin() }

// shareSource lets the objects of a stream share memory, unless a transform may write to them.
func (s *Intake) shareSource() {
	if source, ok := s.Source.(source.Sharer); ok && s.Transform == nil {
		s.Source = source.Shared()
	}
}
