package fleet

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestAnUnknownClusterIsRememberedAsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a activations
		f := newFleet(t, Options{})
		targets := f.Targets(TargetOptions{Activate: a.activate})
		r, err := targets.Ensure(t.Context(), "o", cmTarget("x", "one"))
		assert.ErrorIs(t, err, ErrNotKnown)
		assert.ErrorContains(t, err, "no such cluster")
		_, err = r.List()
		assert.ErrorIs(t, err, ErrNotKnown)
		assert.False(t, r.Complete())
		assert.ErrorContains(t, targets.Status().Err(), "no such cluster")
		a.taken()

		k := newCluster(t, "1", targetMap("x", "one"))
		require.NoError(t, f.Set(Member{Name: "a", Client: k.Client}))
		time.Sleep(time.Second)
		assert.Equal(t, []string{"o"}, a.taken())
		_, err = r.Get()
		assert.NoError(t, err)
		assert.NoError(t, r.Err())
		assert.NoError(t, targets.Status().Err())

		// Another cluster takes the name: its history is another one.
		other := newCluster(t, "2", targetMap("x", "other"))
		require.NoError(t, f.Set(Member{Name: "a", Client: other.Client}))
		time.Sleep(time.Second)
		assert.Equal(t, []string{"o"}, a.taken())
		_, err = r.Get()
		assert.True(t, kates.IsNotFound(err), "%v", err)

		f.Remove("a")
		assert.Equal(t, []string{"o"}, a.taken())
		_, err = r.Get()
		assert.ErrorIs(t, err, ErrNotKnown, "not known is never not found")
		assert.ErrorContains(t, r.Err(), "no such cluster")
	})
}

func TestAnUnknownKindIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a activations
		k := katestest.New(t, katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Widget"}))
		var served atomic.Bool
		client, err := kates.NewClientFromDynamic(k.Dynamic, lateMapper{k.Mapper, "example.com", &served})
		require.NoError(t, err)
		defer client.Close()
		f := newFleet(t, Options{})
		require.NoError(t, f.Set(Member{Name: "a", Client: client}))
		synctest.Wait()
		targets := f.Targets(TargetOptions{Activate: a.activate})
		r, err := targets.Ensure(t.Context(), "o", Target{Cluster: "a", Kind: "widgets.example.com", Namespace: "x", Name: "w"})
		assert.ErrorIs(t, err, ErrNotKnown)
		unknown := new(kates.UnknownKindError)
		assert.ErrorAs(t, err, &unknown)
		time.Sleep(10 * time.Minute)
		s := watchOf(t, targets)
		assert.Greater(t, s.Failures, 10)
		assert.Less(t, s.Failures, 20, "the pauses grow")
		assert.ErrorContains(t, targets.Status().Err(), "widgets")
		assert.ErrorIs(t, r.Err(), ErrNotKnown)

		a.taken()
		served.Store(true)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"o"}, a.taken(), "it is known")
		_, err = r.Get()
		assert.True(t, kates.IsNotFound(err), "%v", err)
		assert.NoError(t, targets.Status().Err())
		assert.Zero(t, watchOf(t, targets).Failures)
		w := kates.NewUnstructured("Widget", "example.com/v1")
		w.SetNamespace("x")
		w.SetName("w")
		require.NoError(t, client.Create(t.Context(), w, nil))
		_, err = r.Get()
		assert.NoError(t, err)
	})
}

// forbid makes a fake refuse lists of config maps, where a function says so.
func forbid(k *katestest.Fake, refuse func(namespace, fields string) bool) {
	k.Dynamic.Lock()
	defer k.Dynamic.Unlock()
	k.Dynamic.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		list := action.(clienttesting.ListAction)
		if refuse(list.GetNamespace(), list.GetListRestrictions().Fields.String()) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
		}
		return false, nil, nil
	})
}

func TestWhereTheWholeKindIsForbiddenNamespacesAreWatchedAndNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []kates.Object
		var wanted []Target
		for _, ns := range []string{"n1", "n2", "n3", "n4", "n5"} {
			objects = append(objects, targetMap(ns, "one"), targetMap(ns, "two"))
			wanted = append(wanted, cmTarget(ns, "one"), cmTarget(ns, "two"))
		}
		_, k, targets := newTargets(t, TargetOptions{}, objects...)
		var mu sync.Mutex
		refused := map[string]bool{"": true, "n5": true}
		forbid(k, func(ns, fields string) bool {
			mu.Lock()
			defer mu.Unlock()
			return refused[ns] && (ns == "" || fields != "metadata.name=one")
		})
		readers, err := targets.Keep("o", wanted...)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"everything in n1", "everything in n2", "everything in n3", "everything in n4", "one in n5"}, watchOf(t, targets).Watched)
		for i, r := range readers {
			_, err := r.Get()
			if i == len(readers)-1 { // n5/two: refused, and holds up no other
				assert.ErrorIs(t, err, ErrNotKnown)
				assert.ErrorContains(t, err, "403")
				continue
			}
			assert.NoError(t, err)
		}
		assert.ErrorContains(t, targets.Status().Err(), "two in namespace n5")

		// Rights are found again, and then the rule holds.
		mu.Lock()
		refused = nil
		mu.Unlock()
		for range 60 {
			time.Sleep(time.Minute)
			for _, r := range readers[:len(readers)-1] {
				_, err := r.Get()
				require.NoError(t, err, "no gap")
			}
		}
		synctest.Wait()
		assert.Equal(t, []string{"everything"}, watchOf(t, targets).Watched)
		assert.NoError(t, targets.Status().Err())
	})
}

func TestAForbiddenStartIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, targets := newTargets(t, TargetOptions{}, targetMap("x", "one"))
		var mu sync.Mutex
		refused := true
		forbid(k, func(string, string) bool {
			mu.Lock()
			defer mu.Unlock()
			return refused
		})
		r, err := targets.Ensure(t.Context(), "o", cmTarget("x", "one"))
		assert.ErrorIs(t, err, ErrNotKnown)
		assert.ErrorContains(t, err, "forbidden")
		assert.ErrorContains(t, targets.Status().Err(), "forbidden")
		mu.Lock()
		refused = false
		mu.Unlock()
		time.Sleep(5 * time.Minute)
		_, err = r.Get()
		assert.NoError(t, err)
		assert.NoError(t, targets.Status().Err())
	})
}

func TestOwnersLearnThatAPlanLeavesTheirTargetOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a activations
		_, k, targets := newTargets(t, TargetOptions{Activate: a.activate})
		for _, ns := range []string{"n1", "n2", "n3", "n4", "n5"} {
			_, err := targets.Want(ns, Target{Cluster: "a", Kind: "configmaps", Namespace: ns})
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		assert.Len(t, a.taken(), 5)
		forbid(k, func(ns, _ string) bool { return ns == "n1" })
		for _, ns := range []string{"n3", "n4", "n5"} {
			targets.Drop(ns) // then two namespaces are watched, of which one may not be read
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"everything in n2"}, watchOf(t, targets).Watched)
		assert.Contains(t, a.taken(), "n1")
	})
}
