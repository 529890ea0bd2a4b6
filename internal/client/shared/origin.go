package shared

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"

	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/engine/warm/files"
	objects "github.com/kates-go/kates/internal/object"
)

// origins tells which server a client has, for warm starts.
type origins struct {
	core *Client
	turn chan struct{} // holds one value while the server is asked
	// Of who has the turn:
	at      time.Time
	member  string // under which files are kept
	cluster string
	version string
	paths   map[string]openapi.GroupVersionWithContext // nil: the server publishes no schemas
}

// originFresh is how long an answer is good: watches that start together ask once.
const originFresh = 2 * time.Second

// Origin returns a function that tells whose the objects of a resource are, as of now.
func (c *Client) Origin() func(context.Context, objects.Resource) (files.Origin, error) {
	return (&origins{core: c, turn: make(chan struct{}, 1)}).of
}

// of returns the origin of a resource's objects, as of now.
func (o *origins) of(ctx context.Context, r objects.Resource) (from files.Origin, err error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return from, ctx.Err()
	}
	if time.Since(o.at) > originFresh || o.member != o.currentMember() {
		if err := o.ask(ctx); err != nil {
			return from, err
		}
		o.at = time.Now()
	}
	from = files.Origin{Member: o.member, Cluster: o.cluster, Server: o.version}
	path := "apis/" + r.GroupVersion().String()
	if r.Group == "" {
		path = "api/" + r.Version
	}
	if published := o.paths[path]; published != nil {
		from.Schema = published.ServerRelativeURL() // it has a hash of the schemas
	} else if !scheme.Scheme.Recognizes(r.Kind) {
		return from, fmt.Errorf("%w: the server does not publish the schema of %s", warm.ErrNoOrigin, r.Kind.GroupKind())
	}
	return from, nil
}

// currentMember returns the name under which files of warm starts are kept for the connection in
// use. It depends on the name of the cluster and on the address.
func (o *origins) currentMember() string {
	link := o.core.Link
	if link == nil {
		return ""
	}
	return files.Member(o.core.Told.Cluster, link.Now().Reach)
}

// ask asks the server.
func (o *origins) ask(ctx context.Context) error {
	c := o.core
	if c.Discovery == nil {
		return fmt.Errorf("%w: the client was made of a dynamic.Interface", warm.ErrNoOrigin)
	}
	member := o.currentMember()
	uid, err := c.ClusterUID(ctx)
	if err != nil {
		return origin(err)
	}
	raw, err := c.Discovery.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return origin(fmt.Errorf("ask for the server's version: %w", kinds.Said(err)))
	}
	var version apiversion.Info
	if err := json.Unmarshal(raw, &version); err != nil || version.GitVersion == "" {
		return fmt.Errorf("%w: its version cannot be read", warm.ErrNoOrigin)
	}
	paths, err := openapi.NewClientWithContext(c.Discovery.RESTClient()).PathsWithContext(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return origin(fmt.Errorf("ask for the server's schemas: %w", kinds.Said(err)))
	}
	if member != o.currentMember() {
		return errors.New("the connection has changed meanwhile")
	}
	o.member, o.cluster, o.version, o.paths = member, string(uid), version.GitVersion, paths
	return nil
}

// origin says of an error whether the server refuses to say what it is.
func origin(err error) error {
	if refused(err) {
		return fmt.Errorf("%w: %w", warm.ErrNoOrigin, err)
	}
	return err
}
