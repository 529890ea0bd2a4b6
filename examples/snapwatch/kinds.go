package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

// kind is one kind that is watched.
type kind struct {
	// title is how it is shown: services, or certificates.cert-manager.io where two kinds have one
	// plural.
	title    string
	resource schema.GroupResource
	kind     schema.GroupKind
	names    []string // of the objects that were asked for; nil for all
	// everywhere: its objects are in namespaces, and those of all namespaces are watched.
	everywhere bool
	query      kates.Query
}

// asked is what an argument asks for: a kind, and the name of an object or "".
type asked struct{ kind, name string }

var errNoKinds = errors.New("you must specify the kinds to watch, such as services,deployments. " +
	"Use \"snapwatch --help\" for examples")

// parseKinds reads the arguments: TYPE, TYPE,TYPE and TYPE/NAME.
func parseKinds(args []string) (all []asked, err error) {
	for _, arg := range args {
		for part := range strings.SplitSeq(arg, ",") {
			name, object, named := strings.Cut(part, "/")
			switch {
			case name == "":
				return nil, fmt.Errorf("%q is not a kind, a list of kinds (services,pods), or TYPE/NAME", arg)
			case named && (object == "" || strings.Contains(object, "/")):
				return nil, fmt.Errorf("arguments in resource/name form must have a single resource and name: %q", part)
			}
			all = append(all, asked{name, object})
		}
	}
	if len(all) == 0 {
		return nil, errNoKinds
	}
	return all, nil
}

// selection narrows all kinds.
type selection struct {
	namespace      string // empty for all
	labels, fields string
	// unknownToo: a kind that the server does not serve is watched, and is missing until it does.
	unknownToo bool
	// transform, and metadataOnly, are for all kinds.
	transform    kates.Transform
	metadataOnly bool
}

// resolve finds the kinds that were asked for, and makes their queries.
func resolve(ctx context.Context, client *kates.Client, all []asked, s selection) ([]*kind, error) {
	var kinds []*kind
	for _, a := range all {
		found, err := s.find(ctx, client, a.kind)
		if err != nil {
			return nil, err
		}
		for _, k := range found {
			same := slices.IndexFunc(kinds, func(o *kind) bool { return o.resource == k.resource })
			switch {
			case same < 0:
				if a.name != "" {
					k.names = []string{a.name}
				}
				kinds = append(kinds, k)
			case a.name == "" || kinds[same].names == nil:
				kinds[same].names = nil // all of the kind
			case !slices.Contains(kinds[same].names, a.name):
				kinds[same].names = append(kinds[same].names, a.name)
			}
		}
	}
	return kinds, s.finish(kinds)
}

// find finds a kind by its name, or those of a category, such as all.
func (s selection) find(ctx context.Context, client *kates.Client, name string) ([]*kind, error) {
	mapping, err := client.Mapping(ctx, name)
	if err == nil {
		k := s.mapped(mapping)
		if gvr, _ := schema.ParseResourceArg(name); gvr != nil && gvr.Version == mapping.Resource.Version {
			k.query.Kind = name // a version was asked for
		}
		return []*kind{k}, nil
	}
	var unknown *kates.UnknownKindError
	if !errors.As(err, &unknown) {
		return nil, err
	}
	if found := s.category(ctx, client, name); len(found) > 0 {
		return found, nil
	}
	if !s.unknownToo {
		return nil, fmt.Errorf("the server doesn't have a resource type %q", name)
	}
	r := schema.ParseGroupResource(strings.ToLower(name))
	query := s.query(name)
	query.Namespace = s.namespace
	return []*kind{{title: r.Resource, resource: r, query: query}}, nil
}

// mapped makes a kind in the version that the server prefers, which may be another one later.
func (s selection) mapped(m *meta.RESTMapping) *kind {
	r := m.Resource.GroupResource()
	k := &kind{
		title: r.Resource, resource: r, kind: m.GroupVersionKind.GroupKind(), query: s.query(r.String()),
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		k.query.Namespace, k.everywhere = s.namespace, s.namespace == ""
	}
	return k
}

// category returns the kinds of a category that can be watched.
func (s selection) category(ctx context.Context, client *kates.Client, name string) (found []*kind) {
	resources, _ := client.ServerPreferredResources() // what can be read is enough here
	for _, r := range resources {
		if !slices.Contains(r.Categories, name) || !slices.Contains(r.Verbs, "watch") ||
			!slices.Contains(r.Verbs, "list") {
			continue
		}
		full := schema.GroupResource{Group: r.Group, Resource: r.Name}.String()
		if mapping, err := client.Mapping(ctx, full); err == nil {
			found = append(found, s.mapped(mapping))
		}
	}
	return found
}

func (s selection) query(kind string) kates.Query {
	return kates.Query{
		Kind: kind, LabelSelector: s.labels, FieldSelector: s.fields, Transform: s.transform,
		MetadataOnly: s.metadataOnly,
		// A kind that is missing or forbidden is shown as that, and the others go on without it.
		Optional: true,
	}
}

var (
	errNameAndSelector  = errors.New("name cannot be provided when a selector is specified")
	errNameAnyNamespace = errors.New("a resource cannot be retrieved by name across all namespaces")
)

// finish gives each kind a title, and each query a name and its objects.
func (s selection) finish(kinds []*kind) error {
	titles := map[string]int{}
	for _, k := range kinds {
		titles[k.title]++
	}
	for _, k := range kinds {
		if titles[k.title] > 1 {
			k.title = k.resource.String()
		}
	}
	seen := map[string]bool{}
	for _, k := range kinds {
		for k.query.Name = field(k.title); seen[k.query.Name]; {
			k.query.Name += "_"
		}
		seen[k.query.Name] = true
		if k.names == nil {
			continue
		}
		switch {
		case s.labels != "" || s.fields != "":
			return errNameAndSelector
		case k.everywhere:
			return errNameAnyNamespace
		}
		for _, name := range k.names {
			k.query.AnyOf = append(k.query.AnyOf, kates.Selection{FieldSelector: "metadata.name=" + name})
		}
	}
	return nil
}

// field makes the name of a struct's field of a title.
func field(title string) string {
	name := []byte(title)
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			name[i] = '_'
		}
	}
	if c := name[0]; c >= 'a' && c <= 'z' {
		name[0] = c - 'a' + 'A'
		return string(name)
	}
	return "X" + string(name)
}

// structOf makes the type of the snapshots: a field for each kind.
func structOf(kinds []*kind) reflect.Type {
	fields := make([]reflect.StructField, len(kinds))
	for i, k := range kinds {
		fields[i] = reflect.StructField{Name: k.query.Name, Type: reflect.TypeFor[[]*unstructured.Unstructured]()}
	}
	return reflect.StructOf(fields)
}
