package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/client/rights"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/doors"
	objects "github.com/kates-go/kates/internal/object"
)

// Roles are what a program may do in a cluster, as RBAC says it. [Rules] makes them.
type Roles struct {
	// ClusterRole has the rights in all namespaces, and those to kinds without a namespace. It is
	// nil if the program needs none of these.
	ClusterRole *rbacv1.ClusterRole
	// Roles have the rights in one namespace each, in the order of the namespaces.
	Roles []*rbacv1.Role
}

// String returns the roles as YAML, which kubectl applies.
func (r *Roles) String() string {
	var all []any
	if r.ClusterRole != nil {
		all = append(all, r.ClusterRole)
	}
	for _, role := range r.Roles {
		all = append(all, role)
	}
	documents := make([]string, len(all))
	for i, role := range all {
		text, err := yaml.Marshal(role)
		if err != nil {
			return err.Error() // a role has nothing that YAML has not
		}
		documents[i] = string(text)
	}
	return strings.Join(documents, "---\n")
}

// Need is something that a program does and needs rights for: see [Rules]. A [Query], a
// [LeaderElection] and a [Sharding] are needs, and [Watches] and [Uses] return some.
type Need interface {
	addRights(ctx context.Context, c *Client, to *rights.Set) error
}

// Rules returns the least roles with which a program can do what it needs, named after the
// program. They are the same each time.
//
//	roles, err := kates.Rules(ctx, client, "gateway",
//	    kates.Watches[Snapshot](kates.Query{Name: "Secrets", Namespace: "certs"}),
//	    kates.Uses(&corev1.ConfigMap{}, kates.CanApplyOwned),
//	    kates.LeaderElection{Namespace: "gateway", Name: "gateway"})
//	if err != nil { ... }
//	fmt.Print(roles)
//
// The client says what the names of kinds mean, and in which namespace Leases are that name none.
// It may be one of a cluster that serves all kinds, or of a test: package katestest. Rules reads
// discovery, and asks for a list of one object where a query selects by fields. It needs no rights:
// that list may be refused. The roles are those that a client on an API server needs, also if this
// one is a fake.
//
// Where everything is in one namespace, the right is in a Role of that namespace. It is a rule of
// the ClusterRole otherwise. What is named is a rule for that name: an object of [Uses], a query
// for metadata.name, a Lease.
//
// Rights that depend on what the program finds are among them:
//
//   - A query for named namespaces needs get of these, for when one is deleted with its roles (see
//     [Query].Namespaces). If nobody can give the program a ClusterRole, leave that out.
//   - Under a lease, writes read what no watch shows (see [LeaderElection], Fencing). If there is a
//     LeaderElection or a Sharding among the needs, all that is written may be read.
//   - A controller asks why a root has left its query, if that selects, and if its struct has a
//     controller.Info.
//   - A client with [WithWarmStart] reads the UID of the namespace kube-system. For
//     [Client.ClusterUID] and [Client.Reconnect] it is [Uses] of that namespace, with [CanGet].
//
// For many clusters, the rights in the cluster that the fleet reads its members from are those of
// Rules, with source.Watches. Those in each member are fleet.Rules.
//
// Discovery, the OpenAPI documents, /version and /readyz are not in the roles: the default roles
// of Kubernetes (system:discovery, system:public-info-viewer) let every user read these. Neither
// are rights that only some rules of a server ask for: the verbs bind and escalate, and what
// admission policies check.
//
// The error names the need: a kind that the client does not know, also one that is optional, or a
// struct that Watch refuses.
func Rules(ctx context.Context, c *Client, name string, needs ...Need) (*Roles, error) {
	err := error(nil)
	switch {
	case c == nil:
		err = errNoClient
	case name == "":
		err = errors.New("the roles have no name")
	case len(needs) == 0:
		err = errors.New("the program needs nothing: no need was given")
	default:
		err = core.Segment("name of a role", name)
	}
	set := &rights.Set{}
	if err == nil {
		err = needsOf(needs).addRights(ctx, c, set)
	}
	if err != nil {
		return nil, reach.First(fmt.Errorf("rules: %w", err))
	}
	if c.core.Streams.Keeps() {
		set.Add(rights.Right{Resource: "namespaces", Name: metav1.NamespaceSystem}, "get")
	}
	roles := &Roles{}
	roles.ClusterRole, roles.Roles = set.Roles(name)
	return roles, nil
}

// needsOf are several needs.
type needsOf []Need

func (all needsOf) addRights(ctx context.Context, c *Client, to *rights.Set) error {
	for i, need := range all {
		if need == nil {
			return fmt.Errorf("need %d is nil", i)
		}
		if err := need.addRights(ctx, c, to); err != nil {
			return err
		}
	}
	return nil
}

// foreign are the needs of another package of the library, or why it has none.
type foreign struct {
	needs needsOf
	err   error
}

func (n foreign) addRights(ctx context.Context, c *Client, to *rights.Set) error {
	if n.err != nil {
		return n.err
	}
	return n.needs.addRights(ctx, c, to)
}

// leased is the need of what writes under a lease of another cluster: no Lease, but to read.
type leased struct{}

func (leased) addRights(_ context.Context, _ *Client, to *rights.Set) error {
	to.Lease()
	return nil
}

// Watches is the need of a program that watches a struct type: by [Watch], [WatchEach], [Run],
// [RunEach], or a controller. The options are the same as there, and options that need no rights
// do not matter. A field that comes later (`kates:",later"`) counts as if its query was there from
// the start: give the query, if the field does not say the kind. Queries that a program makes at
// run time are needs of their own.
func Watches[S any](options ...RunOption) Need { return watches{reflect.TypeFor[S](), options} }

type watches struct {
	of      reflect.Type
	options []RunOption
}

func (n watches) addRights(ctx context.Context, c *Client, to *rights.Set) error {
	fail := func(err error) error { return fmt.Errorf("watches of %s: %w", objects.TypeName(n.of), err) }
	settings, err := readRunOptions(n.options)
	if err == nil {
		err = settings.checkLeases(c)
	}
	if err != nil {
		return fail(err)
	}
	compiler := c.With(settings.watch...).compiler()
	s := compile.Struct{Reports: slices.Clone(reports), Mode: compile.Mode{Roles: true}}
	if doors.Info != nil {
		s.Reports = append(s.Reports, compile.Report{Type: doors.Info, What: "of type " + doors.Info.String()})
	}
	if s, err = compiler.EveryField(ctx, s, n.of, wantedOf(settings.queries)); err != nil {
		return fail(err)
	}
	departs := slices.ContainsFunc(s.Reports, func(r compile.Report) bool { return r.Type == doors.Info && r.Index != nil })
	for _, w := range s.Wanted {
		asked := departs && w.Role == compile.Root && w.Narrows()
		if err := compiler.Rights(ctx, to, w, s.Wanted, asked); err != nil {
			return fail(fmt.Errorf("query %q: %w", w.Name, err))
		}
	}
	if settings.election != nil {
		settings.election.need(c, to)
	}
	if settings.sharding != nil {
		settings.sharding.need(c, to)
	}
	return nil
}

func (q Query) addRights(ctx context.Context, c *Client, to *rights.Set) error {
	if err := c.compiler().Rights(ctx, to, q.wanted(), []compile.Wanted{q.wanted()}, false); err != nil {
		return fmt.Errorf("query %q of %q: %w", q.Name, q.Kind, err)
	}
	return nil
}

// leases is the resource of Leases in a namespace.
func leases(namespace string) rights.Right {
	return rights.Right{Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace}
}

func (e LeaderElection) addRights(_ context.Context, c *Client, to *rights.Set) error {
	if err := (&runSettings{election: &e}).checkLeases(c); err != nil {
		return fmt.Errorf("a LeaderElection: %w", err)
	}
	e.need(c, to)
	return nil
}

// need adds what an election needs. Nothing that is created has its name in the path.
func (e LeaderElection) need(c *Client, to *rights.Set) {
	of := leases(e.config(c).Namespace)
	to.Add(of, "create")
	of.Name = e.Name
	to.Add(of, "get", "update")
	to.Lease()
}

func (s Sharding) addRights(_ context.Context, c *Client, to *rights.Set) error {
	err := s.checkBy()
	if err == nil {
		err = (&runSettings{sharding: &s}).checkLeases(c)
	}
	if err != nil {
		return fmt.Errorf("a Sharding: %w", err)
	}
	s.need(c, to)
	return nil
}

// need adds what shards need. The Leases are named after the replicas.
func (s Sharding) need(c *Client, to *rights.Set) {
	to.Add(leases(s.config(c).Namespace), "create", "delete", "get", "list", "update", "watch")
	to.Lease()
}

// Ability is a method of a client that a program calls: see [Uses].
type Ability string

// The abilities. Functions of package kates that write through a method have its ability.
const (
	CanGet Ability = "get" // [Client.Get], and [GetCached] of what is not watched
	// CanList is for [Client.List]. A Query with a NamespaceSelector also needs CanList of
	// "namespaces", and so does CanDeleteAll.
	CanList         Ability = "list"
	CanCreate       Ability = "create"       // [Client.Create]
	CanUpdate       Ability = "update"       // [Client.Update]
	CanUpdateStatus Ability = "updateStatus" // [Client.UpdateStatus]
	// CanPatch is for [Client.Patch]. A JSON patch with [IfUID] or [IfResourceVersion] also needs
	// CanGet: it tells a conflict from an invalid patch.
	CanPatch        Ability = "patch"
	CanApply        Ability = "apply"        // [Client.Apply], which may create the object
	CanUpsert       Ability = "upsert"       // [Client.Upsert]
	CanModify       Ability = "modify"       // [Modify], and what changes finalizers: [UnderFinalizer]
	CanModifyStatus Ability = "modifyStatus" // [ModifyStatus], [Client.SetConditions]
	CanDelete       Ability = "delete"       // [Client.Delete]
	CanDeleteAll    Ability = "deleteAll"    // [Client.DeleteAll]
	CanReadLogs     Ability = "readLogs"     // [Client.PodLogs]

	// CanApplyOwned is for the kinds of the objects of an [OwnedSet], and for those of its Kinds. If
	// the owner has no namespace, or is in another cluster, and the set has no Existing, what is to
	// be pruned is looked for in all namespaces: then the object of Uses has no namespace.
	CanApplyOwned Ability = "applyOwned"
	// CanOwn is for the kind of the Owner of an [OwnedSet], and of all that owns by
	// [SetControllerReference]. Only a server with the admission plugin
	// OwnerReferencesPermissionEnforcement asks for that right, as OpenShift's does. To change the
	// owners of an object that exists, it also asks for CanDelete of the object.
	CanOwn Ability = "own"
)

// Of is the ability to call the method for a subresource: CanCreate.Of("eviction") is
// [Client.CreateSubresource]. There are CanGet, CanCreate, CanUpdate and CanPatch.
func (a Ability) Of(subresource string) Ability { return a + "/" + Ability(subresource) }

// Uses is the need of a program that calls methods for objects of one kind. The object stands for
// them. If it has a namespace, they are all in that one; if it has none, they may be anywhere, also
// if the client has a default. If it has a name, it is the only one. In its place, a text says the
// kind, as kubectl takes it.
//
//	kates.Uses(&appsv1.Deployment{}, kates.CanApply, kates.CanDelete)
//	kates.Uses("hosts.getambassador.io", kates.CanModifyStatus)
//	kates.Uses(&corev1.Pod{}, kates.CanCreate.Of("eviction"))
//
// A name does not narrow requests that have no name in their path: lists, [Client.Create], and
// [Client.Upsert] of an object that does not exist.
func Uses(object any, abilities ...Ability) Need { return uses{object, abilities} }

type uses struct {
	object    any
	abilities []Ability
}

func (n uses) addRights(ctx context.Context, c *Client, to *rights.Set) error {
	of, err := n.target(ctx, c)
	if err != nil {
		return fmt.Errorf("uses of %s: %w", n.what(), err)
	}
	if len(n.abilities) == 0 {
		return fmt.Errorf("uses of %s: no ability was given, such as kates.CanApply", n.what())
	}
	for _, a := range n.abilities {
		if err := to.Use(of, string(a)); err != nil {
			return fmt.Errorf("uses of %s: %w", n.what(), err)
		}
	}
	return nil
}

func (n uses) what() string {
	if kind, ok := n.object.(string); ok {
		return fmt.Sprintf("%q", kind)
	}
	return fmt.Sprintf("a %T", n.object)
}

// target finds out what the object stands for.
func (n uses) target(ctx context.Context, c *Client) (of rights.Target, err error) {
	w := compile.Wanted{}
	if kind, ok := n.object.(string); ok {
		w.Kind = kind
	} else {
		u, err := c.core.Core.Untyped(n.object)
		if err != nil {
			return of, err
		}
		w.GVK, of.Namespace, of.Name = u.GroupVersionKind(), u.GetNamespace(), u.GetName()
	}
	mapping, err := c.compiler().Mapping(ctx, &w)
	if err != nil {
		return of, err
	}
	r := c.core.Resource(ctx, mapping)
	if of.Namespace != "" && !r.Namespaced {
		return of, fmt.Errorf("%s are in no namespace, so leave the namespace out", r.Resource)
	}
	of.Group, of.Resource = r.Group, r.Resource
	_, dynamic := c.core.Server.(wire.Dynamic)
	of.Reads = dynamic && c.core.Fake == nil
	return of, nil
}
