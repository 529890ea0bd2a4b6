package audience

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/object"
)

// Part is the part of a stream that one reader sees: some of its objects, or their metadata alone.
// A nil Part is all of it.
type Part struct {
	namespace, name string // the only ones that are selected; "" for all
	selector        object.Judge
	kind            schema.GroupVersionKind
	// short, if not nil, has the metadata of each object as it was handed out last: one version is
	// one pointer.
	short map[object.Key]shortened
}

// shortened is an object and its metadata.
type shortened struct{ of, as object.Object }

// NewPart returns the part that a query selects. shortens: the reader sees metadata alone.
func NewPart(r object.Resource, spec object.Spec, namespace string, shortens bool) *Part {
	p := &Part{namespace: namespace, name: spec.OnlyName(), selector: object.NewJudge(r, spec), kind: r.Kind}
	if shortens {
		p.short = make(map[object.Key]shortened)
	}
	return p
}

// Covers reports whether an object with a key can be in the part.
func (p *Part) Covers(key object.Key) bool {
	return p == nil || (p.name == "" || p.name == key.Name) && (p.namespace == "" || p.namespace == key.Namespace)
}

// Has reports whether an object is in the part. Of one that does not decode the labels may be
// unknown: it is in, so that somebody hears of it.
func (p *Part) Has(o object.Object) bool {
	o = object.Bare(o)
	switch {
	case p == nil || o == nil:
		return o != nil
	case p.namespace != "" && o.GetNamespace() != p.namespace:
		return false
	}
	return p.selector.ByMetadata(o)
}

// Narrow returns what the reader sees of an object that the stream shows, without a stamp: nil if
// the object is not in the part.
func (p *Part) Narrow(key object.Key, o object.Object) object.Object {
	o = object.Bare(o)
	switch {
	case p == nil:
		return o
	case !p.Has(o):
		delete(p.short, key)
		return nil
	case p.short == nil:
		return o
	}
	last := p.short[key]
	if last.of == o {
		return last.as
	}
	as := p.shorten(o)
	if last.of != nil && last.of.GetResourceVersion() == o.GetResourceVersion() && object.Alike(last.as, as) {
		as = last.as // a list shows the version otherwise, but not its metadata
	}
	p.short[key] = shortened{of: o, as: as}
	return as
}

// shorten returns an object's metadata. It shares memory with the object.
func (p *Part) shorten(o object.Object) object.Object {
	if object.Fault(o) != nil {
		known := object.FaultMetadata(o)
		if known == nil {
			return o
		}
		o = known
	}
	short, err := object.Shorten(o, p.kind)
	if err != nil {
		return object.Reject(object.IDAs(o, p.kind), nil, object.Original{}, err)
	}
	return short
}

// Filter leaves the changes whose objects the reader sees, as the reader sees them. It writes to
// the list.
func (p *Part) Filter(all []Change) []Change {
	seen := all[:0]
	for _, c := range all {
		if c.Object = p.Narrow(c.Key, c.Object); c.Object != nil {
			seen = append(seen, c)
		}
	}
	clear(all[len(seen):])
	return seen
}
