package object

import (
	"encoding/json"
	"math"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Projected is an object of which some fields are held: its identity, and a value of a struct type
// that has what a program reads. It is small, and nobody writes to it: its setters panic, and it
// is its own copy.
type Projected struct {
	kind          *schema.GroupVersionKind
	name, version string
	uid           types.UID
	created       int64 // in seconds; never: not at all
	shared        shared
	rare          *rare // nil: it has nothing of it
	value         any   // a pointer to a struct
}

// shared is what many objects have in common.
type shared struct {
	namespace string
	labels    map[string]string
}

// rare is what few objects have, or what few queries hold.
type rare struct {
	deleted int64 // as [Projected].created
	more    More
}

// More is what an object has of its metadata if a query holds it for a function that reads it.
type More struct {
	Annotations map[string]string       `json:"annotations,omitempty"`
	Owners      []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	Finalizers  []string                `json:"finalizers,omitempty"`
	Generation  int64                   `json:"generation,omitempty"`
}

// never is no moment.
const never = math.MinInt64

// Head is what a projected object has of its metadata. More is not decoded with it.
type Head struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	UID       types.UID         `json:"uid"`
	Version   string            `json:"resourceVersion"`
	Created   *metav1.Time      `json:"creationTimestamp"`
	Deleted   *metav1.Time      `json:"deletionTimestamp"`
	Labels    map[string]string `json:"labels"`
	More      More              `json:"-"`
}

// Beside says which metadata of its objects a query holds beside the fields of a struct.
type Beside struct {
	Labels, Annotations, Owners, Finalizers, Generation bool
}

// More reports whether that is more than labels.
func (b Beside) More() bool { return b.Annotations || b.Owners || b.Finalizers || b.Generation }

// Of leaves of the metadata what is held.
func (b Beside) Of(h Head) Head {
	if !b.Labels {
		h.Labels = nil
	}
	if !b.Annotations {
		h.More.Annotations = nil
	}
	if !b.Owners {
		h.More.Owners = nil
	}
	if !b.Finalizers {
		h.More.Finalizers = nil
	}
	if !b.Generation {
		h.More.Generation = 0
	}
	return h
}

// NewProjected makes an object of a kind. value is a pointer to a struct. It may be shared from
// then on. All objects of a stream share the kind.
func NewProjected(kind *schema.GroupVersionKind, h Head, value any) *Projected {
	p := &Projected{
		kind: kind, name: h.Name, uid: h.UID, version: h.Version, created: seconds(h.Created),
		shared: shared{namespace: h.Namespace, labels: h.Labels}, value: value,
	}
	if m := h.More; !h.Deleted.IsZero() || len(m.Annotations)+len(m.Owners)+len(m.Finalizers) > 0 || m.Generation != 0 {
		p.rare = &rare{deleted: seconds(h.Deleted), more: m}
	}
	return p
}

// seconds is a moment as the API has it.
func seconds(t *metav1.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.Unix()
}

// Head is what the object has of its metadata.
func (p *Projected) Head() Head {
	return Head{
		Name: p.name, Namespace: p.shared.namespace, UID: p.uid, Version: p.version,
		Created: moment(p.created), Deleted: p.GetDeletionTimestamp(), Labels: p.shared.labels, More: p.more(),
	}
}

// more is what the object has of [More].
func (p *Projected) more() (m More) {
	if p.rare != nil {
		m = p.rare.more
	}
	return m
}

// Value is a pointer to the struct that has the object's fields.
func (p *Projected) Value() any { return p.value }

// An Interner lets what p points to share memory with others, and with its version before: a
// pointer of the same type, or nil.
type Interner func(p, before any)

// Share lets an object that is not published yet share memory with its version before, which may
// be nil, and with others. Where the fields that are held are the same, the value is the same
// pointer.
func (p *Projected) Share(before *Projected, intern Interner) {
	var was, shown any
	if before != nil && reflect.TypeOf(before.value) == reflect.TypeOf(p.value) {
		if p.name == before.name && p.uid == before.uid {
			p.name, p.uid = before.name, before.uid
		}
		was, shown = &before.shared, before.value
	}
	intern(&p.shared, was)
	p.shareRare(before, intern)
	if shown != nil && SameValue(p.value, shown) && reflect.DeepEqual(p.value, shown) { // [] is no nil
		p.value = shown
		return
	}
	intern(p.value, shown)
}

func (p *Projected) shareRare(before *Projected, intern Interner) {
	switch {
	case p.rare == nil:
	case before == nil || before.rare == nil:
		intern(p.rare, nil)
	case SameValue(p.rare, before.rare):
		p.rare = before.rare
	default:
		intern(p.rare, before.rare)
	}
}

// SameValue is [SameContent] for two pointers that need not be objects.
func SameValue(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	return va.IsValid() && vb.IsValid() && va.Type() == vb.Type() && comparerOf(va.Type())(va, vb, 0)
}

// sameProjected is [SameContent] for projected objects.
func sameProjected(a, b *Projected) bool {
	return *a.kind == *b.kind && a.name == b.name && a.uid == b.uid &&
		a.version == b.version && a.created == b.created &&
		SameValue(&a.shared, &b.shared) && SameValue(a.rare, b.rare) && SameValue(a.value, b.value)
}

// SameShown is [SameContent] but for what is held beside the struct.
func SameShown(a, b *Projected) bool {
	return KeyOf(a) == KeyOf(b) && *a.kind == *b.kind && a.uid == b.uid && b.version == a.version &&
		SameValue(a.value, b.value)
}

// MarshalJSON is the JSON of what is held: that of the value, with the object's identity.
func (p *Projected) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(p.value)
	if err != nil {
		return nil, err
	}
	all, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal(text, &all) != nil || all == nil {
		all = map[string]json.RawMessage{} // a type with a form of its own
	}
	if json.Unmarshal(all["metadata"], &meta) != nil || meta == nil {
		meta = map[string]json.RawMessage{}
	}
	version, kind := p.kind.ToAPIVersionAndKind()
	put(all, "apiVersion", version)
	put(all, "kind", kind)
	put(meta, "name", p.name)
	put(meta, "namespace", p.shared.namespace)
	put(meta, "uid", string(p.uid))
	put(meta, "resourceVersion", p.version)
	put(meta, "creationTimestamp", stamp(p.created))
	if p.rare != nil {
		put(meta, "deletionTimestamp", stamp(p.rare.deleted))
	}
	more := p.more()
	for name, held := range map[string]any{
		"labels": p.shared.labels, "annotations": more.Annotations, "ownerReferences": more.Owners, "finalizers": more.Finalizers,
		"generation": more.Generation,
	} {
		if !reflect.ValueOf(held).IsZero() {
			meta[name], _ = json.Marshal(held) // texts and numbers always have a form
		}
	}
	if all["metadata"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// put sets a member; an empty one is left out.
func put(to map[string]json.RawMessage, name, value string) {
	delete(to, name)
	if value != "" {
		text, _ := json.Marshal(value) // a string always has a form
		to[name] = text
	}
}

// stamp is a moment as the API writes it.
func stamp(at int64) string {
	if at == never {
		return ""
	}
	return time.Unix(at, 0).UTC().Format(time.RFC3339)
}

// GetObjectKind is the kind of the object itself.
func (p *Projected) GetObjectKind() schema.ObjectKind { return (*fixedKind)(p.kind) }

// fixedKind is a kind that stays.
type fixedKind schema.GroupVersionKind

func (k *fixedKind) GroupVersionKind() schema.GroupVersionKind { return schema.GroupVersionKind(*k) }
func (*fixedKind) SetGroupVersionKind(schema.GroupVersionKind) { readOnly() }

// DeepCopyObject returns the same: it does not change.
func (p *Projected) DeepCopyObject() runtime.Object { return p }

func moment(at int64) *metav1.Time {
	if at == never {
		return nil
	}
	return &metav1.Time{Time: time.Unix(at, 0)}
}

// What is held of the metadata.

func (p *Projected) GetName() string              { return p.name }
func (p *Projected) GetNamespace() string         { return p.shared.namespace }
func (p *Projected) GetUID() types.UID            { return p.uid }
func (p *Projected) GetResourceVersion() string   { return p.version }
func (p *Projected) GetLabels() map[string]string { return p.shared.labels }
func (p *Projected) GetDeletionTimestamp() *metav1.Time {
	if p.rare == nil {
		return nil
	}
	return moment(p.rare.deleted)
}
func (p *Projected) GetCreationTimestamp() (at metav1.Time) {
	if m := moment(p.created); m != nil {
		at = *m
	}
	return at
}

// What is held where a function reads it.

func (p *Projected) GetGeneration() int64                        { return p.more().Generation }
func (p *Projected) GetAnnotations() map[string]string           { return p.more().Annotations }
func (p *Projected) GetOwnerReferences() []metav1.OwnerReference { return p.more().Owners }
func (p *Projected) GetFinalizers() []string                     { return p.more().Finalizers }

// What is not held.

func (p *Projected) GetGenerateName() string                       { return "" }
func (p *Projected) GetSelfLink() string                           { return "" }
func (p *Projected) GetDeletionGracePeriodSeconds() *int64         { return nil }
func (p *Projected) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

// What nobody may do.

func (p *Projected) SetName(string)                               { readOnly() }
func (p *Projected) SetNamespace(string)                          { readOnly() }
func (p *Projected) SetUID(types.UID)                             { readOnly() }
func (p *Projected) SetResourceVersion(string)                    { readOnly() }
func (p *Projected) SetLabels(map[string]string)                  { readOnly() }
func (p *Projected) SetDeletionTimestamp(*metav1.Time)            { readOnly() }
func (p *Projected) SetCreationTimestamp(metav1.Time)             { readOnly() }
func (p *Projected) SetGenerateName(string)                       { readOnly() }
func (p *Projected) SetGeneration(int64)                          { readOnly() }
func (p *Projected) SetSelfLink(string)                           { readOnly() }
func (p *Projected) SetDeletionGracePeriodSeconds(*int64)         { readOnly() }
func (p *Projected) SetAnnotations(map[string]string)             { readOnly() }
func (p *Projected) SetFinalizers([]string)                       { readOnly() }
func (p *Projected) SetOwnerReferences([]metav1.OwnerReference)   { readOnly() }
func (p *Projected) SetManagedFields([]metav1.ManagedFieldsEntry) { readOnly() }

func readOnly() { panic("an object of which some fields are held is read-only: write with the client") }
