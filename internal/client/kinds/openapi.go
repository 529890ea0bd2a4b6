package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/kates-go/kates/internal/client/kinds/selectable"
)

// document is what the OpenAPI document of a group version declares. It is read, or being read.
// The fields below read are set before done is closed.
type document struct {
	done    chan struct{}
	read    time.Time
	schemas Schemas
	err     error
	cut     bool // the context of the call that read it ended
}

// lacks reports whether the document does not declare all of these fields of the kind.
func (d *document) lacks(kind string, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(field string) bool {
		_, ok := d.schemas.selectable[kind][field]
		return !ok
	})
}

// Declared returns the selectable fields of a custom kind. If it does not declare all that are
// wanted, the error says so, beside the fields that there are.
func (r *Resolver) Declared(
	ctx context.Context, kind schema.GroupVersionKind, wanted []string,
) (selectable.Fields, error) {
	d, err := r.documented(ctx, kind.GroupVersion(), func(d *document) bool {
		return d.lacks(kind.Kind, wanted)
	})
	switch {
	case err != nil:
		return nil, err
	case !d.lacks(kind.Kind, wanted):
		return d.schemas.selectable[kind.Kind], nil
	case d.err != nil:
		return d.schemas.selectable[kind.Kind], d.err
	}
	return d.schemas.selectable[kind.Kind], fmt.Errorf("OpenAPI does not declare all of %q", wanted)
}

// documented returns the document of a group version. It is read once. It is read again if it
// lacks something (a server publishes it a moment after the kind) or could not be read, at most
// once per resetInterval. Concurrent calls share one reading. No lock is held meanwhile.
func (r *Resolver) documented(
	ctx context.Context, gv schema.GroupVersion, lacks func(*document) bool,
) (*document, error) {
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

// document returns the document of a group version. A new one is mine: the caller has to read it.
func (r *Resolver) document(gv schema.GroupVersion) (d *document, mine bool) {
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

// dropDocument forgets a document. It is false if it is too early to read it again.
func (r *Resolver) dropDocument(gv schema.GroupVersion, d *document) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.documents[gv] == d {
		if !d.cut && r.clock.Now().Sub(d.read) < resetInterval {
			return false
		}
		delete(r.documents, gv)
	}
	return true // it was dropped now, or by another call
}

func (r *Resolver) readDocument(ctx context.Context, d *document, gv schema.GroupVersion) {
	defer close(d.done)
	raw, err := r.readOpenAPI(ctx, gv)
	if err == nil {
		d.schemas, err = ReadSchemas(gv, raw)
	}
	if err != nil {
		d.err = fmt.Errorf("read OpenAPI of %s: %w", gv, err)
	}
	d.cut = err != nil && ctx.Err() != nil
}

// readOpenAPI reads the document of a group version. It does not use client-go's cache, which
// keeps errors, and makes other calls wait for a request after their contexts have ended.
func (r *Resolver) readOpenAPI(ctx context.Context, gv schema.GroupVersion) ([]byte, error) {
	if r.disco == nil || r.disco.RESTClient() == nil {
		return nil, ErrNoDiscovery
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
