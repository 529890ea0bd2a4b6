package stream

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/object"
)

// silent is a server that never answers.
func silent(object.Resource, string, object.Form) source.Source {
	return source.Plain{ListerWatcherWithContext: &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}
}

// alone has one stream.
type alone struct{ floorRV string }

func (a *alone) FloorRV(string) string       { return a.floorRV }
func (a *alone) LowerFloor(string)           { a.floorRV = "" }
func (*alone) OtherShares(*Stream) []*Stream { return nil }
func (*alone) Release(*Stream)               {}
func (*alone) Closed() bool                  { return false }

// listening returns a listener to all ConfigMaps of a server that never answers.
func listening(t *testing.T, pendingMost int) (*alone, *Listener) {
	set := &alone{}
	s := New(&Shared{
		Config: Config{Source: silent, PendingMax: pendingMost}.WithDefaults(), Owner: set, Room: store.NewRoom(0),
	}, intake.New(configMaps, all, intake.KeyOf(configMaps, all), silent, intake.NewBudget(0)))
	return set, s.Join(s.Key, nil, ListenOptions{Wake: func() {}, Trouble: func() {}})
}

var configMaps = object.Resource{
	GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	Kind:                 schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Storage: "configmaps",
}

var all = object.Spec{Form: object.Whole}

// TestG4G5EachPhaseIsLeftAsItsDrawingSays walks the phases of a stream: what a listener can take in
// each, and what leads to the next.
func TestG4G5EachPhaseIsLeftAsItsDrawingSays(t *testing.T) {
	set, l := listening(t, 1)
	rv := 10
	write := func() {
		rv++
		o := &unstructured.Unstructured{}
		o.SetName(fmt.Sprint("o", rv))
		o.SetUID("u")
		o.SetResourceVersion(fmt.Sprint(rv))
		w := coherence.Write{Key: object.KeyOf(o), UID: "u", Version: o.GetResourceVersion(), Object: o}
		set.floorRV = w.Version
		assert.True(t, l.Stage().OwnWrite(w))
	}
	list := func(at int) error {
		return l.Stage().List(map[object.Key]object.Object{}, fmt.Sprint(at), "")
	}
	is := func(want phase, can audience.Phase, extent audience.Extent) {
		t.Helper()
		l.stream.mu.Lock()
		now := l.stream.progress.phase
		l.stream.mu.Unlock()
		assert.Equal(t, want, now)
		assert.Equal(t, can, l.State().Phase)
		assert.Equal(t, extent, l.Take().Extent)
	}
	is(firstList, audience.FirstList, audience.Unknown)
	write()
	is(firstList, audience.FirstList, audience.Unknown)
	write() // one more than may be pending
	is(firstGivenUp, audience.FirstList, audience.Unknown)
	assert.Error(t, list(rv-1), "older than an own write that was given up")
	is(firstGivenUp, audience.FirstList, audience.Unknown)
	require.NoError(t, list(rv))
	is(following, audience.Following, audience.Everything)
	write()
	write()
	is(givenUp, audience.Relisting, audience.Lost)
	assert.Error(t, list(rv-1))
	is(givenUp, audience.Relisting, audience.Lost)
	l.Untake()
	is(givenUp, audience.Dropped, audience.Unknown)
	require.NoError(t, list(rv))
	is(following, audience.Following, audience.Everything)
	require.NoError(t, list(rv))
	is(following, audience.Following, audience.Some)
	write()
	assert.Len(t, l.Take().Changes, 1)
	write() // one more than may be pending
	is(givenUp, audience.Relisting, audience.Lost)
	l.stream.Gone(errors.New("no such resource"))
	is(following, audience.Following, audience.Everything)
	l.Each("", func(key object.Key, _ object.Object) { t.Errorf("%s is shown of what is gone", key) })
}

// TestG4ASyncThatMovesThePositionWakesTheOthers: an older goal is reached by it, too.
func TestG4ASyncThatMovesThePositionWakesTheOthers(t *testing.T) {
	_, l := listening(t, 0)
	require.NoError(t, l.Stage().List(map[object.Key]object.Object{}, "10", ""))
	other := make(chan struct{}, 1)
	l.stream.mu.Lock()
	l.stream.waiters[other] = struct{}{}
	l.stream.mu.Unlock()
	assert.True(t, syncing{l.stream}.reached(goal{rv: "20", versions: map[object.Key]string{}}))
	select {
	case <-other:
	default:
		t.Error("nobody told the other Sync")
	}
	assert.True(t, syncing{l.stream}.reached(goal{rv: "15", versions: map[object.Key]string{{Name: "gone"}: "12"}}))
}
