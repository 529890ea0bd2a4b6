//go:build soak

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/kates"
)

// soakers is the group of the own clients' users.
const soakers = "soakers"

// disaster makes what goes wrong with servers. What one of its methods breaks is whole again when
// the method returns.
type disaster struct {
	*testing.T
	*cluster.Cluster
	servers []*cluster.Server
	admin   *kubernetes.Clientset
	others  dynamic.Interface
	c       *chronicle

	mu     sync.Mutex
	counts map[string]int
	// backup is the newest one. Its revision is no older than from, and no newer than since.
	backup      *cluster.Backup
	from, since int64
	// cuts are the times in which a server was about to die, and did not write its log.
	cuts [][2]time.Time
}

// balanced dials one of the servers that accept connections, at random.
func (d *disaster) balanced(seed uint64) func(ctx context.Context, network, _ string) (net.Conn, error) {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 0))
	return func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		mu.Lock()
		order := r.Perm(len(d.servers))
		mu.Unlock()
		for _, i := range order {
			if conn, err = (&net.Dialer{}).DialContext(ctx, network, d.servers[i].Address()); err == nil {
				break
			}
		}
		return conn, err
	}
}

func (d *disaster) count(what string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[what] += n
}

// lateLog is how long after its answer a server may write its log, on a loaded machine.
const lateLog = 5 * time.Second

// cut reports whether a server died without its log, between two times.
func (d *disaster) cut(from, to time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.cuts {
		if from.Before(c[1]) && to.Add(lateLog).After(c[0]) {
			return true
		}
	}
	return false
}

// dies kills a server that has written no log since a time.
func (d *disaster) dies(s *cluster.Server, since time.Time) {
	assert.NoError(d, s.Kill())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cuts = append(d.cuts, [2]time.Time{since, time.Now()})
	d.counts["kills"]++
}

// ofServers kills and pauses servers until ctx ends.
func (d *disaster) ofServers(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		n := r.IntN(3)
		one, other := d.servers[n], d.servers[(n+1+r.IntN(2))%3]
		switch r.IntN(6) {
		case 0, 1: // one dies
			d.dies(one, time.Now())
			pause(ctx, time.Duration(r.IntN(2000))*time.Millisecond)
			assert.NoError(d, one.Start())
		case 2: // two die
			d.dies(one, time.Now())
			d.dies(other, time.Now())
			assert.NoError(d, one.Start())
			assert.NoError(d, other.Start())
		case 3, 4: // one sleeps
			assert.NoError(d, one.Pause())
			d.count("pauses", 1)
			pause(ctx, time.Duration(500+r.IntN(7000))*time.Millisecond)
			assert.NoError(d, one.Resume())
		case 5: // one sleeps while another dies, and then dies in its sleep
			slept := time.Now()
			assert.NoError(d, one.Pause())
			d.count("pauses", 1)
			d.dies(other, time.Now())
			assert.NoError(d, other.Start())
			if r.IntN(2) == 0 {
				d.dies(one, slept)
				assert.NoError(d, one.Start())
			} else {
				assert.NoError(d, one.Resume())
			}
		}
		pause(ctx, time.Duration(r.IntN(4000))*time.Millisecond)
	}
}

// ofStorage compacts and kills etcd, and changes rights and definitions, until ctx ends.
func (d *disaster) ofStorage(ctx context.Context, r *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		if n == 1 && (d.backup == nil || r.IntN(2) == 0) { // else a restore goes back to an earlier round
			d.backUp()
		}
		switch r.IntN(8) {
		case 0, 1:
			d.compact(ctx)
		case 2:
			assert.NoError(d, d.KillEtcd())
			pause(ctx, time.Duration(r.IntN(1500))*time.Millisecond)
			assert.NoError(d, d.StartEtcd())
			d.count("kills of etcd", 1)
		case 3:
			resource := worldKinds[r.IntN(3)].Resource
			d.allow(resource, false)
			pause(ctx, time.Duration(r.IntN(4000))*time.Millisecond)
			d.allow(resource, true)
			d.count("rights taken", 1)
		case 4:
			d.remove(ctx, r)
		case 5:
			d.define(func(spec map[string]any) { withStored(spec, r.IntN(2)) })
			d.count("stored versions moved", 1)
		case 6:
			d.define(func(spec map[string]any) { withDefault(spec, []any{nil, "a", "b"}[r.IntN(3)]) })
			d.count("defaults changed", 1)
		case 7:
			d.unserve(ctx, r)
		}
		pause(ctx, time.Duration(r.IntN(3000))*time.Millisecond)
	}
}

// compact makes etcd forget what the chronicle has.
func (d *disaster) compact(ctx context.Context) {
	revision, err := d.Revision(ctx)
	if err != nil {
		return // the run is over
	}
	d.until("the chronicle follows", func() error { return d.c.behind(revision) })
	assert.NoError(d, d.CompactAt(context.Background(), revision))
	d.count("compactions", 1)
}

// soakPatience is how long the run waits for what must come. A machine that others use as well has
// taken more than a minute to settle. What never comes is found a few minutes later.
const soakPatience = 5 * patience

// until does something again and again until it is done.
func (d *disaster) until(what string, do func() error) {
	var err error
	for deadline := time.Now().Add(soakPatience); time.Now().Before(deadline); {
		if err = do(); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	assert.NoError(d, err, what)
}

// brieflyFor bounds one request: its server may be paused.
func brieflyFor(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return do(ctx)
}

// allow grants or takes away the rights of the own clients to a kind.
func (d *disaster) allow(resource string, allowed bool) {
	bindings := d.admin.RbacV1().ClusterRoleBindings()
	name := soakers + "-" + resource
	d.until("rights to "+resource, func() error {
		return brieflyFor(func(ctx context.Context) error {
			if !allowed {
				err := bindings.Delete(ctx, name, metav1.DeleteOptions{})
				if apierrors.IsNotFound(err) {
					err = nil
				}
				return err
			}
			_, err := bindings.Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: soakers}},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			}, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				err = nil
			}
			return err
		})
	})
}

// roles makes the roles of the own clients.
func (d *disaster) roles() {
	rules := map[string]rbacv1.PolicyRule{
		"serviceaccounts": {APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"*"}},
	}
	for _, gvr := range worldKinds {
		rules[gvr.Resource] = rbacv1.PolicyRule{APIGroups: []string{gvr.Group}, Resources: []string{gvr.Resource, gvr.Resource + "/*"}, Verbs: []string{"*"}}
	}
	for resource, rule := range rules {
		_, err := d.admin.RbacV1().ClusterRoles().Create(d.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: soakers + "-" + resource}, Rules: []rbacv1.PolicyRule{rule},
		}, metav1.CreateOptions{})
		require.NoError(d, err)
		d.allow(resource, true)
	}
}

const hostsDefinition = "hosts.getambassador.io"

// otherVersion is a second version of hosts. Servers prefer the first.
const otherVersion = "v2alpha1"

// definition returns the definition of hosts with two versions, both served.
func (d *disaster) definition() *unstructured.Unstructured {
	content, err := os.ReadFile("../testdata/crds/hosts.yaml")
	require.NoError(d, err)
	u := &unstructured.Unstructured{}
	require.NoError(d, yaml.Unmarshal(content, &u.Object))
	spec := u.Object["spec"].(map[string]any)
	first := spec["versions"].([]any)[0].(map[string]any)
	second := (&unstructured.Unstructured{Object: first}).DeepCopy().Object
	second["name"], second["storage"] = otherVersion, false
	spec["versions"] = []any{first, second}
	return u
}

func withStored(spec map[string]any, n int) {
	for i, v := range spec["versions"].([]any) {
		v.(map[string]any)["storage"] = i == n
	}
}

func withServed(spec map[string]any, n int, served bool) {
	spec["versions"].([]any)[n].(map[string]any)["served"] = served
}

// defaulted is the field that has a default now and then.
const defaulted = "grade"

func withDefault(spec map[string]any, value any) {
	for _, v := range spec["versions"].([]any) {
		field := map[string]any{"type": "string"}
		if value != nil {
			field["default"] = value
		}
		_ = unstructured.SetNestedMap(v.(map[string]any), field, "schema", "openAPIV3Schema", "properties", "spec", "properties", defaulted)
	}
}

// define changes the definition of hosts, or makes it.
func (d *disaster) define(change func(spec map[string]any)) (made bool) {
	in := d.others.Resource(definitions)
	d.until("the definition of hosts", func() error {
		return brieflyFor(func(ctx context.Context) error {
			u, err := in.Get(ctx, hostsDefinition, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				made = true
				u = d.definition()
				change(u.Object["spec"].(map[string]any))
				_, err = in.Create(ctx, u, metav1.CreateOptions{})
				return err
			}
			if err != nil {
				return err
			}
			if u.GetDeletionTimestamp() != nil {
				d.release(ctx)
				return fmt.Errorf("%s is being deleted: %v", hostsDefinition, u.Object["status"])
			}
			spec := u.Object["spec"].(map[string]any)
			if len(spec["versions"].([]any)) == 1 { // as the suite has installed it
				spec["versions"] = d.definition().Object["spec"].(map[string]any)["versions"]
			}
			change(spec)
			_, err = in.Update(ctx, u, metav1.UpdateOptions{})
			return err
		})
	})
	return made
}

// release removes the finalizers of hosts: their definition goes away when they have gone.
func (d *disaster) release(ctx context.Context) {
	in := d.others.Resource(hosts)
	list, err := in.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, o := range list.Items {
		if len(o.GetFinalizers()) > 0 {
			_, _ = in.Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
}

// serves waits until each server serves both versions of hosts, or has done so.
func (d *disaster) serves() {
	for _, s := range d.servers {
		config := at(d.Cluster, s)
		config.Timeout = 5 * time.Second
		in, err := dynamic.NewForConfig(config)
		require.NoError(d, err)
		k, err := kubernetes.NewForConfig(config)
		require.NoError(d, err)
		d.until("the server serves hosts", func() error {
			for _, version := range []string{hosts.Version, otherVersion} {
				if _, err := k.Discovery().ServerResourcesForGroupVersion(hosts.Group + "/" + version); err != nil {
					return err
				}
				gvr := hosts
				gvr.Version = version
				if _, err := in.Resource(gvr).Namespace("default").List(context.Background(), metav1.ListOptions{Limit: 1}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// doubting lets hosts be in doubt since a time until all servers serve them.
func (d *disaster) doubting(began time.Time) {
	d.serves()
	d.c.doubt(doubt{resource: hosts.Resource, began: began, over: time.Now()})
}

// remove removes the definition of hosts, and with it all hosts, and makes it again.
func (d *disaster) remove(ctx context.Context, r *rand.Rand) {
	began := time.Now()
	d.until("hosts are removed", func() error {
		return brieflyFor(func(ctx context.Context) error {
			err := d.others.Resource(definitions).Delete(ctx, hostsDefinition, metav1.DeleteOptions{})
			if err == nil || apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	})
	pause(ctx, time.Duration(r.IntN(4000))*time.Millisecond)
	d.define(func(map[string]any) {})
	d.doubting(began)
	d.count("definitions removed", 1)
}

// unserve stops serving a version of hosts for a while.
func (d *disaster) unserve(ctx context.Context, r *rand.Rand) {
	n := r.IntN(2)
	d.define(func(spec map[string]any) { withServed(spec, n, false) })
	pause(ctx, time.Duration(r.IntN(5000))*time.Millisecond)
	d.define(func(spec map[string]any) { withServed(spec, n, true) })
	d.serves()
	d.count("versions not served for a while", 1)
}

// whole makes rights and definitions whole, as far as a backup lacks them.
func (d *disaster) whole(since time.Time) {
	for _, gvr := range worldKinds {
		d.allow(gvr.Resource, true)
	}
	made := d.define(func(spec map[string]any) {
		withServed(spec, 0, true)
		withServed(spec, 1, true)
	})
	if made {
		d.doubting(since)
	} else {
		d.serves()
	}
}

// config returns a configuration for a user, or for the cluster's own if the name is "", through
// connections to any of the servers.
func (d *disaster) config(user string, seed uint64) *rest.Config {
	config := rest.CopyConfig(d.Config)
	if user != "" {
		own, err := d.AddUser(user, soakers)
		require.NoError(d, err)
		config = own
	}
	config.Dial = d.balanced(seed)
	return config
}

// mayFail reports whether the error of an own write says that it was not made, because of what was
// done to rights and definitions.
func mayFail(err error) bool {
	var unknown *kates.UnknownKindError
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || errors.As(err, &unknown) || errors.Is(err, kates.ErrIncompleteDiscovery)
}
