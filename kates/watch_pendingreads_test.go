package kates_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type pendingSnapshot struct {
	ConfigMaps []*kates.ConfigMap
	ByName     kates.Lookup[*kates.ConfigMap] `kates:"configmaps"`
	Deltas     []*kates.Delta
}

// text is the config maps' names and values. The namespace's own, of the cluster's CA, is left out.
func (s *pendingSnapshot) text() string { return textOfMaps(s.ConfigMaps...) }

func textOfMaps(maps ...*kates.ConfigMap) string {
	var all []string
	for _, m := range maps {
		if m.Name != "kube-root-ca.crt" {
			all = append(all, m.Name+"="+m.Data["a"])
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// pendingWrites is a client whose watch is late, with own writes that it has not shown: x was
// changed, ours was made, gone was deleted. Others have written x, theirs and gone since.
type pendingWrites struct {
	t      *testing.T
	client *kates.Client
	faults *katestest.Faults
	snaps  *kates.Snapshots[pendingSnapshot]
	lister *kates.Lister[*kates.ConfigMap]
	late   *katestest.Rule
}

const (
	asWritten = "new-is-ours"
	asServer  = "ours=ours theirs=them x=them" // by what the server has
	asShown   = "ours=ours theirs=old x=" + asWritten
)

func newPendingWrites(t *testing.T) *pendingWrites {
	s := katestest.NewServer(t, katestest.WithObjects(
		configMap("x", "a", "old"), configMap("theirs", "a", "old"), configMap("gone", "a", "old")))
	p := &pendingWrites{t: t, faults: katestest.NewFaults(t, 1)}
	config := rest.CopyConfig(s.Config)
	config.Wrap(p.faults.Wrap)
	var err error
	p.client, err = kates.NewClientFromRESTConfig(config, kates.WithInterval(0), katestest.DetectMutations(t))
	require.NoError(t, err)
	t.Cleanup(p.client.Close)
	p.snaps, err = kates.Watch[pendingSnapshot](t.Context(), p.client)
	require.NoError(t, err)
	t.Cleanup(p.snaps.Close)
	<-p.snaps.Changed()
	p.lister, err = kates.NewLister[*kates.ConfigMap](t.Context(), p.client, kates.Query{})
	require.NoError(t, err)
	t.Cleanup(p.lister.Close)
	synctest.Wait()
	p.late = p.faults.Now(katestest.Match{Verb: "watch", Resource: "configmaps"}).Stall(0)

	ctx := t.Context()
	require.NoError(t, p.client.Update(ctx, configMap("x", "a", asWritten), nil))
	require.NoError(t, p.client.Create(ctx, configMap("ours", "a", "ours"), nil))
	require.NoError(t, p.client.Delete(ctx, configMap("gone"), nil))
	other := s.Client(t)
	for _, name := range []string{"x", "theirs"} {
		require.NoError(t, other.Update(ctx, configMap(name, "a", "them"), nil))
	}
	synctest.Wait()
	return p
}

func (p *pendingWrites) look() (snap *pendingSnapshot, changed bool) {
	snap = &pendingSnapshot{}
	changed, err := p.snaps.Update(p.t.Context(), snap)
	require.NoError(p.t, err)
	return snap, changed
}

func (p *pendingWrites) pending() (all int) {
	for _, q := range p.snaps.Status().Queries {
		all += q.Pending
	}
	return all
}

// cachedMaps reads by name, each in the form of T.
func cachedMaps[T any](dataOf func(*T) string, options ...kates.CachedOption) func(context.Context, *pendingWrites) (string, error) {
	return func(ctx context.Context, p *pendingWrites) (string, error) {
		var all []string
		for _, name := range []string{"gone", "ours", "theirs", "x"} {
			o, err := kates.GetCached[T](ctx, p.client, "default", name, options...)
			if kates.IsNotFound(err) {
				continue
			}
			if err != nil {
				return "", err
			}
			all = append(all, name+"="+dataOf(o))
		}
		return strings.Join(all, " "), nil
	}
}

func dataOfMap(o *kates.ConfigMap) string { return o.Data["a"] }

// pendingReads are all ways to read, with what each says, and whether it asks the server.
var pendingReads = map[string]struct {
	read  func(context.Context, *pendingWrites) (string, error)
	want  string
	asked bool
}{
	"Get": {func(ctx context.Context, p *pendingWrites) (string, error) {
		var all []*kates.ConfigMap
		for _, name := range []string{"gone", "ours", "theirs", "x"} {
			o := &kates.ConfigMap{}
			if err := p.client.Get(ctx, configMap(name), o); err == nil {
				all = append(all, o)
			} else if !kates.IsNotFound(err) || name != "gone" {
				return "", err
			}
		}
		return textOfMaps(all...), nil
	}, asServer, true},
	"List": {func(ctx context.Context, p *pendingWrites) (string, error) {
		var all []*kates.ConfigMap
		err := p.client.List(ctx, kates.Query{Kind: "configmaps", Namespace: "default"}, &all)
		return textOfMaps(all...), err
	}, asServer, true},
	"a List of another form": {func(ctx context.Context, p *pendingWrites) (string, error) {
		var all []map[string]any
		err := p.client.List(ctx, kates.Query{Kind: "configmaps", FieldSelector: "metadata.name=gone"}, &all)
		return fmt.Sprint(len(all)), err
	}, "0", true},
	"the dynamic interface": {func(ctx context.Context, p *pendingWrites) (string, error) {
		maps := p.client.DynamicInterface().Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))
		o, err := maps.Namespace("default").Get(ctx, "x", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(o.Object["data"]), nil
	}, "map[a:them]", true},
	"GetCached": {cachedMaps(dataOfMap), asShown, false},
	"GetCached of metadata": {cachedMaps(func(o *kates.PartialObjectMetadata) string { return o.Name }, kates.OfKind("configmaps")),
		"ours=ours theirs=theirs x=x", false},
	"GetCached of more than the watch has": {cachedMaps(func(o *map[string]any) string {
		return fmt.Sprint((*o)["data"].(map[string]any)["a"])
	}, kates.OfKind("configmaps")), asServer, true},
	"a lister's Get": {func(_ context.Context, p *pendingWrites) (string, error) {
		var all []*kates.ConfigMap
		for _, name := range []string{"gone", "ours", "theirs", "x"} {
			if o, err := p.lister.Get("default", name); err == nil {
				all = append(all, o)
			} else if !kates.IsNotFound(err) || name != "gone" {
				return "", err
			}
		}
		return textOfMaps(all...), nil
	}, asShown, false},
	"a lister's List": {func(_ context.Context, p *pendingWrites) (string, error) {
		all, err := p.lister.List("default", nil)
		return textOfMaps(all...), err
	}, asShown, false},
	"a new lister": {func(ctx context.Context, p *pendingWrites) (string, error) {
		lister, err := kates.NewLister[*kates.ConfigMap](ctx, p.client, kates.Query{})
		if err != nil {
			return "", err
		}
		defer lister.Close()
		all, err := lister.List("default", nil)
		return textOfMaps(all...), err
	}, asShown, false},
	"a snapshot of another watch": {func(ctx context.Context, p *pendingWrites) (string, error) {
		other, err := kates.Watch[pendingSnapshot](ctx, p.client)
		if err != nil {
			return "", err
		}
		defer other.Close()
		<-other.Changed()
		snap := &pendingSnapshot{}
		_, err = other.Update(ctx, snap)
		return snap.text(), err
	}, asShown, false},
}

// While own writes are pending on a server that has versions, no way to read ends them, changes a
// snapshot, or takes back what was shown. Those that do not ask the server contain them.
func TestG4G5AReadChangesNothingThatAWatchShowsWhileOwnWritesArePending(t *testing.T) {
	for name, c := range pendingReads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPendingWrites(t)
				before, changed := p.look()
				require.True(t, changed)
				require.Equal(t, asShown, before.text())
				pending := p.pending()
				require.Positive(t, pending)
				requests := len(p.faults.Requests(katestest.Match{}))

				for range 2 {
					got, err := c.read(t.Context(), p)
					require.NoError(t, err)
					assert.Equal(t, c.want, got)
				}
				assert.Equal(t, c.asked, len(p.faults.Requests(katestest.Match{})) > requests, "requests")

				assert.Equal(t, pending, p.pending(), "a read ends no own write")
				after, changed := p.look()
				assert.False(t, changed, "a read is no change")
				assert.Empty(t, after.Deltas)
				require.Len(t, after.ConfigMaps, len(before.ConfigMaps))
				for i, o := range before.ConfigMaps {
					assert.Same(t, o, after.ConfigMaps[i])
				}

				p.late.Stop()
				time.Sleep(time.Minute)
				synctest.Wait()
				last, changed := p.look()
				assert.True(t, changed)
				assert.Equal(t, asServer, last.text())
				assert.Zero(t, p.pending(), "G6")
				byName, err := last.ByName.Get("default", "x")
				require.NoError(t, err)
				assert.Equal(t, "them", byName.Data["a"])
			})
		})
	}
}
