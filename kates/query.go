package kates

import (
	"slices"

	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/query"
)

// A Query says which objects to list or watch: those of one kind, in one namespace or in all,
// narrowed by selectors.
//
// # What its functions get
//
// [Where], [Key], [Signal] and [Transform] are made of a function of yours, by [WhereOf], [KeyOf],
// [SignalOf] and [TransformOf], or are ready-made: [ByNamespace], [GenerationChanged],
// [DropManagedFields] and others. The argument of your function says what it gets, whatever the
// watch holds: in a unit test and in production it is the same. It is one of
//
//   - *corev1.Pod, or whatever the kind's Go type is,
//   - a pointer to a struct of your own with the fields that the function reads, but for a
//     Transform,
//   - *[Unstructured], or map[string]any,
//   - metav1.Object, for the metadata alone. Every object has that. Where a watch holds some fields
//     of its objects (a Projection, or a field of a struct of your own), it has labels, annotations,
//     owner references, finalizers and the generation beside what is always held.
//
// If the watch holds another type, the object is converted for each call. An object that does not
// decode is left out as [Invalid] by a Where, a Key or a Transform. For a Signal its change counts.
//
//	Key: kates.KeyOf(func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
type Query struct {
	// Name of the snapshot's field that gets the objects. List ignores it.
	Name string
	// Kind is whatever kubectl takes, in any letter case: svc, Service, services,
	// deployments.apps, Deployment.v1.apps.
	Kind string
	// Namespace of the objects. Empty means all namespaces, whatever the client's default
	// namespace is. For a kind whose objects are in no namespace it is an error to name one, or to
	// select some: at Watch, or in the query's status if the kind is installed later.
	Namespace string
	// Namespaces, if not nil, replaces Namespace by several namespaces. Each has a list and a
	// watch of its own, so rights in each of them suffice. An empty list is no namespace. When a
	// namespace is deleted while the watch is not connected, the client must get the namespace to
	// know that its objects are gone. That needs a cluster role: a role within the namespace is
	// deleted with it. Without that right the client sees only a refused list, and a refusal
	// removes nothing.
	Namespaces []string
	// NamespaceSelector narrows a query over all namespaces to those whose labels it selects:
	// team=a. It needs the rights to watch the kind in all namespaces, and to watch namespaces. The
	// objects of all namespaces are received, and held.
	// When the labels of a namespace change, its objects come or go in one snapshot.
	NamespaceSelector string
	// FieldSelector narrows by fields that the server supports for the kind: metadata.name=x,
	// spec.nodeName=y, or what a custom kind declares in selectableFields. Others fail with the
	// server's error. The client itself judges whether an own write moves an object in or out.
	// Where it cannot (a kind of an aggregated API, an OpenAPI document that it cannot read), the
	// write method asks the server with one short list. See
	// https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
	FieldSelector string
	// LabelSelector narrows by labels: app=web,tier!=cache. For the LabelSelector of an API type
	// use metav1.FormatLabelSelector: of one that selects everything, or nothing, Watch returns an
	// error. See https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
	LabelSelector string
	// AnyOf, if not nil, has alternatives: one of them must select an object, and so must the
	// query's own selectors where they are set. A server cannot be asked for alternatives, so the
	// client judges them: each object that comes, in each version. What no alternative selects is
	// dropped at once: it is not held, not kept for a warm start, and not logged. But it is
	// received. A query for the Secrets of a type or with a label (type=kubernetes.io/tls, or ca)
	// receives all Secrets of its namespaces, and needs the rights to list and watch them.
	//
	// The server selects by what all alternatives have in common, and by all values of a label of
	// which each wants some: app=a and app=b is app in (a,b). Alternatives that require a name or a
	// namespace by their fields (metadata.namespace=x,metadata.name=y) are watched there, by a list
	// and a watch for each, and rights there suffice. Two of them overlap if an object may be in
	// both, as a name in all namespaces and a namespace do. Then one watch is as wide as both, and
	// needs the rights for that: without them nothing of either is shown.
	//
	// An alternative selects by labels, metadata.name, metadata.namespace, the fields of a built-in
	// kind, and the selectableFields of a custom one. Any other field is an error of Watch that
	// names it, and so is each field beside the metadata with MetadataOnly. A single alternative is
	// the server's, whatever its fields. Objects of a custom kind that selectableFields select are
	// held untyped, as with [Tuning].UntypedStreams. The server publishes these fields a moment
	// after the definition: Watch asks for them for up to ten seconds. An object that does not
	// decode is judged by its metadata, so it may be [Invalid] though its fields select it out.
	AnyOf []Selection
	// Optional: the field is nil where the server certainly does not serve the kind, or refuses
	// again and again to list it: for lack of rights, or because the kind has no lists. It is
	// filled as soon as that changes. An outage is none of these: the first snapshot waits for it
	// as for any other query. A kind that discovery says cannot be watched is an error of Watch.
	// If such a kind comes later, the field stays nil, and Status has the error.
	Optional bool
	// MetadataOnly watches only the metadata of the objects: the server sends no more, and the
	// client holds no more. A field of []*PartialObjectMetadata, or of another form with that
	// type, implies it.
	MetadataOnly bool
	// Where, if any, narrows the query by a function of the program: see [WhereOf]. The function
	// selects by what no selector can, such as a list inside of spec. If the function fails for an
	// object, the object is left out as [Invalid] with that reason. Every watch applies Where, in
	// Run, controllers and fleets too, and so do NewLister, List and [Client.DeleteAll]. Own writes
	// are judged at once. List and DeleteAll return the reason as an error, and DeleteAll deletes
	// nothing then.
	//
	// The server cannot be asked: all objects that the selectors select are received. What Where
	// leaves out is dropped at once. It is not held, not kept for a warm start, and not logged. An
	// object that comes in or goes out is a create or a delete for the snapshot. A query with a
	// Where has a watch of its own, shared with queries of the same Where. Its objects are not
	// kept for a warm start.
	//
	// It is called for each version of an object, before Transform, and may be called again for
	// the same version. It has to decide the same for the same object: what else it looks at is
	// not watched. It must not write to the object, and runs like Transform. An object that does
	// not decode is judged by a function on metadata; otherwise it is in, and Invalid. With a
	// Projection, the function takes a metav1.Object or a struct of the program with the fields
	// that it reads.
	Where Where
	// Transform, if any, changes each version of an object before anybody holds it: it drops what
	// the program does not need. It runs once per version, and again with each list that repeats
	// the version, to see whether the object looks otherwise now. So it must make the same of the
	// same object. See [DropManagedFields], [DropFields] and [Transforms]. [WithTransform] sets one
	// for all queries that have none. The query selects objects before the transform.
	//
	// Nobody else has the object yet. Transform must not change kind, namespace, name, UID and
	// resource version, and must not keep the object. It runs without locks, possibly in several
	// goroutines at once. One of them is the goroutine that watches, so Transform has to be quick.
	// If it returns an error or panics, that one object is left out as [Invalid] until its next
	// version.
	//
	// Equal queries share a watch only if their transforms are one value: keep what DropFields or
	// TransformOf returns in a variable. List ignores it.
	Transform Transform
	// Projection, if set, has only some fields of the objects decoded and held: see [Keep]. The
	// other ones are as if they were not there. A Transform gets what is held. List ignores it.
	Projection Projection
	// Signal, if any, says whether a change is worth a signal. Without it every change is.
	// Changes that are not worth a signal are in the next snapshot and its deltas all the same.
	// old is nil for an object that is new to the query, and current is nil for one that left it.
	// An object that was replaced by another of its name did both: there are two calls. See
	// [GenerationChanged], [LabelsChanged], [AnnotationsChanged] and [AnySignal].
	//
	// It is called once per change, with what the watch holds of the objects (after Transform).
	// It must not write to them, and runs like Transform. A panic is logged and counts as true.
	// List ignores it.
	Signal Signal
	// Key says to which partitions an object belongs, for [WatchEach], [RunEach] and the watched
	// fields of a controller. The object belongs to the keys that it returns: one, several or
	// none. An empty key is none. If [EveryPartition] is among them, it belongs to all. In a query
	// without a Key all objects belong to every partition. See [ByNamespace], [ByName],
	// [ByNamespacedName], [ByUID], [ByOwner], [ByLabel], [ByAnnotation], [ByField] and [KeyOf].
	//
	// Key is called for each version of an object, with what the watch holds (after Transform). It
	// must not write to the object, and runs like Transform. The same object always has the same
	// keys. If Key panics, the object is left out as [Invalid] until its next version. Watch, Run,
	// NewLister and List do not ask it: one list of queries can be for both Watch and WatchEach.
	//
	// Key may be called again for the same version. Where the watch holds some fields, Key judges
	// an object when it is received, while all of it is known. Where the query has a Signal, Key
	// says whether a quiet change is one of an invalid object. And an object that is left out for
	// another reason is reported to its partitions: then Key gets the whole object. A query that
	// holds some fields, or has a Transform, shares its watch with queries of the same Key alone.
	Key Key
	// Refs, if not nil, narrows the watch to the objects that objects of other queries name. Each
	// is watched one by one, for as long as it is named. This needs the rights to list and watch
	// them by their names (resourceNames), and little memory. See [RefsOf]. LabelSelector and
	// FieldSelector narrow it further. It goes with neither namespaces nor AnyOf. A [Lookup] does
	// not find what is not named.
	//
	// The first snapshot waits until each named object is known to be present or absent. Later, a
	// new version of an object that names another one is not shown before the other is known. Its
	// former version stays until then, and everything else goes on. This takes a moment, and ten
	// seconds at most. After that, or where the server refuses, the named object counts as absent
	// until it is known, and Status has the error. If the query is Optional, the first snapshot
	// does not wait for what the server refuses either. An own write that names something new is
	// an exception to "each later snapshot shows it": it waits like others.
	//
	// Each named object costs a list and a watch, shared with all equal ones. They end some time
	// ([Tuning].Linger) after the last name of the object is gone. For thousands of objects a
	// query without Refs costs less, if there are the rights. From a thousand on this is logged,
	// once. Queries with Refs may name each other in a chain, but not in a circle. List ignores
	// Refs, NewLister refuses them.
	Refs []Ref
}

// Selection narrows a query by labels and fields, as [Query] does: what is set must select an
// object.
type Selection struct {
	LabelSelector string
	FieldSelector string
}

// wanted returns the query as it is compiled.
func (q Query) wanted() compile.Wanted {
	w := compile.Wanted{
		Name: q.Name, Kind: q.Kind, Optional: q.Optional, MetadataOnly: q.MetadataOnly, Keep: q.Projection.paths,
		Place:     compile.Place{Namespace: q.Namespace, Namespaces: q.Namespaces, NamespaceSelector: q.NamespaceSelector},
		Selection: compile.Selection{LabelSelector: q.LabelSelector, FieldSelector: q.FieldSelector},
		Functions: compile.Functions{Where: q.Where.f, Transform: q.Transform.f, Signal: q.Signal.f, Key: q.Key.f},
	}
	if q.AnyOf != nil {
		w.AnyOf = make([]compile.Selection, len(q.AnyOf))
	}
	for i, s := range q.AnyOf {
		w.AnyOf[i] = compile.Selection(s)
	}
	if q.Refs != nil {
		w.Refs = make([]compile.Ref, len(q.Refs))
	}
	for i, r := range q.Refs {
		w.Refs[i] = r.ref
	}
	return w
}

// clone returns a copy, with lists of its own.
func (q Query) clone() Query {
	q.Namespaces, q.AnyOf, q.Refs = slices.Clone(q.Namespaces), slices.Clone(q.AnyOf), slices.Clone(q.Refs)
	return q
}

// wantedOf returns queries as they are compiled. The watch remembers them as they are now, see
// changeQuery.
func wantedOf(queries []Query) []compile.Wanted {
	all := make([]compile.Wanted, len(queries))
	for i, q := range queries {
		all[i] = q.wanted()
		all[i].Given = &query.Given{As: q.clone()}
	}
	return all
}

// compiler compiles queries for the watches of this client.
func (c *Client) compiler() *compile.Compiler {
	w := c.watch.get()
	return &compile.Compiler{Core: &c.core.Core, Untyped: c.core.Untyped, Transform: w.transform.f, Wrong: w.wrong}
}

// keyed returns the compiler for readers that ask the Keys of queries.
func (c *Client) keyed() *compile.Compiler {
	compiler := c.compiler()
	compiler.Keyed = true
	return compiler
}
