package kates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/kinds/selectable"
)

// reader is how the accumulator reads selectable fields; nil where there are none.
func reader(f selectable.Fields) accumulator.FieldReader {
	if len(f) == 0 {
		return nil
	}
	return func(o accumulator.Object, field string) (string, bool) { return f.Value(o, field) }
}

// readFields lets r read the fields that a query selects by, as far as they can be known. Only
// where they are neither metadata nor built in is the server asked for its OpenAPI document.
func (c *Client) readFields(ctx context.Context, r *accumulator.Resource, q Query) {
	if r.Field != nil {
		return // what a built-in resource does not declare, the server refuses
	}
	var wanted []string
	for _, s := range append([]Selection{{FieldSelector: q.FieldSelector}}, q.AnyOf...) {
		_, f, err := s.selectors()
		if err != nil || f == nil {
			continue
		}
		for _, req := range f.Requirements() {
			if req.Field != "metadata.name" && req.Field != "metadata.namespace" {
				wanted = append(wanted, req.Field)
			}
		}
	}
	if len(wanted) == 0 {
		return
	}
	declared, err := c.core.resolver.declared(ctx, r.Kind, wanted)
	if err != nil && !c.core.fake {
		c.core.log.V(1).Info("selectable fields not known: own writes are settled by a list each",
			"kind", r.Kind.String(), "fields", wanted, "error", err.Error())
	}
	r.Field = reader(declared)
}

// document is what the OpenAPI document of a group version declares, being read or read. Its
// fields are set before done is closed.
type document struct {
	done   chan struct{}
	read   time.Time
	kinds  map[string]selectable.Fields
	shapes shapes
	err    error
	cut    bool // short, by the context of the call that read it
}

// lacks reports whether the kind declares not all of these fields.
func (d *document) lacks(kind string, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(field string) bool { _, ok := d.kinds[kind][field]; return !ok })
}

// declared returns the selectable fields of a custom kind. Fields that are wanted and missing are an error beside those that
// there are.
func (r *resolver) declared(ctx context.Context, kind schema.GroupVersionKind, wanted []string) (selectable.Fields, error) {
	d, err := r.documented(ctx, kind.GroupVersion(), func(d *document) bool { return d.lacks(kind.Kind, wanted) })
	switch {
	case err != nil:
		return nil, err
	case !d.lacks(kind.Kind, wanted):
		return d.kinds[kind.Kind], nil
	case d.err != nil:
		return nil, d.err
	}
	return d.kinds[kind.Kind], fmt.Errorf("OpenAPI does not declare all of %q", wanted)
}

// documented returns the document of a group version. It is read once, and again
// where it lacks what is wanted (a server publishes it a moment after the kind) or could not be read, at most
// once per resetInterval; concurrent calls share one reading. No lock is held meanwhile.
func (r *resolver) documented(ctx context.Context, gv schema.GroupVersion, lacks func(*document) bool) (*document, error) {
	for {
		d, mine := r.document(gv)
		if mine {
			r.readDocument(ctx, d, gv)
		}
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !lacks(d) || mine || !r.dropDocument(gv, d) {
			return d, nil
		}
	}
}

// document is that of a group version, or a new one, which whoever gets it has to read.
func (r *resolver) document(gv schema.GroupVersion) (d *document, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d = r.documents[gv]; d != nil {
		return d, false
	}
	d = &document{done: make(chan struct{}), read: r.clock.Now()}
	if r.documents == nil {
		r.documents = map[schema.GroupVersion]*document{}
	}
	r.documents[gv] = d
	return d, true
}

// dropDocument forgets a document, unless it is too early to read it again.
func (r *resolver) dropDocument(gv schema.GroupVersion, d *document) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.documents[gv] == d {
		if !d.cut && r.clock.Now().Sub(d.read) < resetInterval {
			return false
		}
		delete(r.documents, gv)
	}
	return true // or somebody else has it read again
}

func (r *resolver) readDocument(ctx context.Context, d *document, gv schema.GroupVersion) {
	defer close(d.done)
	raw, err := r.readOpenAPI(ctx, gv)
	if err == nil {
		d.kinds, err = declaredIn(gv, raw)
	}
	if err == nil {
		d.shapes, err = shapesIn(gv, raw)
	}
	if err != nil {
		d.err = fmt.Errorf("read OpenAPI of %s: %w", gv, err)
	}
	d.cut = err != nil && ctx.Err() != nil
}

// readOpenAPI reads the document of a group version. It goes past the
// cache of client-go, which keeps errors, and makes others wait for a request without regard to their contexts.
func (r *resolver) readOpenAPI(ctx context.Context, gv schema.GroupVersion) ([]byte, error) {
	if r.disco == nil || r.disco.RESTClient() == nil {
		return nil, errNoDiscovery
	}
	paths, err := openapi.NewClientWithContext(r.disco.RESTClient()).PathsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("the index: %w", err)
	}
	at, ok := paths["apis/"+gv.String()]
	if !ok {
		return nil, errors.New("there is no such document")
	}
	return at.SchemaWithContext(ctx, "application/json")
}

// declaredIn finds the selectable fields by kind in the OpenAPI v3 document of a group version. It has
// kinds of other groups too: those that belong to every group.
func declaredIn(gv schema.GroupVersion, raw []byte) (map[string]selectable.Fields, error) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Kinds      []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
				Selectable []struct {
					FieldPath string `json:"fieldPath"`
				} `json:"x-kubernetes-selectable-fields"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	kinds := map[string]selectable.Fields{}
	for _, s := range doc.Components.Schemas {
		var paths []string
		for _, f := range s.Selectable {
			paths = append(paths, f.FieldPath)
		}
		for _, kind := range s.Kinds {
			if len(paths) > 0 && kind.Group == gv.Group && kind.Version == gv.Version {
				kinds[kind.Kind] = selectable.Custom(paths)
			}
		}
	}
	return kinds, nil
}
