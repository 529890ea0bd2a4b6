package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// activations are the owners that were activated.
type activations struct {
	mu     sync.Mutex
	owners []string
}

func (a *activations) activate(owners ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owners = append(a.owners, owners...)
}

// taken returns the owners that were activated since the last time, in order, each once.
func (a *activations) taken() []string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	owners := a.owners
	a.owners = nil
	slices.Sort(owners)
	return slices.Compact(owners)
}

// newTargets makes targets on a fleet of one cluster "a".
func newTargets(t *testing.T, o TargetOptions, objects ...kates.Object) (*Fleet, *katestest.Fake, *Targets) {
	t.Helper()
	k := newCluster(t, "1", objects...)
	f := newFleet(t, Options{})
	require.NoError(t, f.Set(Member{Name: "a", Client: k.Client}))
	synctest.Wait()
	return f, k, f.Targets(o)
}

func targetMap(namespace, name string, labels ...string) *kates.ConfigMap {
	cm := &kates.ConfigMap{}
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	cm.Namespace, cm.Name = namespace, name
	for _, l := range labels {
		if cm.Labels == nil {
			cm.Labels = map[string]string{}
		}
		cm.Labels[l] = "yes"
	}
	return cm
}

func cmTarget(namespace, name string) Target {
	return Target{Cluster: "a", Kind: "configmaps", Namespace: namespace, Name: name}
}

// ensure ensures a target that is known at once.
func ensure(t *testing.T, targets *Targets, owner string, target Target) *Reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := targets.Ensure(ctx, owner, target)
	require.NoError(t, err)
	return r
}

func listed(t *testing.T, r *Reader) (all []string) {
	t.Helper()
	objects, err := r.List()
	require.NoError(t, err)
	for _, o := range objects {
		all = append(all, o.GetNamespace()+"/"+o.GetName())
	}
	return all
}

func watchOf(t *testing.T, targets *Targets) TargetWatchStatus {
	t.Helper()
	s := targets.Status()
	require.Len(t, s.Watches, 1, "%s", s)
	return s.Watches[0]
}

func TestATargetIsKnownWhenEnsured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, targets := newTargets(t, TargetOptions{},
			targetMap("x", "one"), targetMap("x", "two", "app"), targetMap("y", "three", "app"))
		one := ensure(t, targets, "o", cmTarget("x", "one"))
		o, err := one.Get()
		require.NoError(t, err)
		assert.Equal(t, "one", o.GetName())
		assert.Equal(t, []string{"x/one"}, listed(t, one))
		assert.Equal(t, []string{"one in x"}, watchOf(t, targets).Watched)

		none := ensure(t, targets, "o", cmTarget("x", "none"))
		_, err = none.Get()
		assert.True(t, kates.IsNotFound(err), "%v", err)
		assert.NoError(t, none.Err())
		assert.Empty(t, listed(t, none))

		app := ensure(t, targets, "o", Target{Cluster: "a", Kind: "cm", LabelSelector: "app=yes"})
		assert.Equal(t, []string{"x/two", "y/three"}, listed(t, app))
		appInY := ensure(t, targets, "o", Target{Cluster: "a", Kind: "cm", LabelSelector: "app=yes", Namespace: "y"})
		assert.Equal(t, []string{"y/three"}, listed(t, appInY))
		x := ensure(t, targets, "o", Target{Cluster: "a", Kind: "cm", Namespace: "x", MetadataOnly: true})
		assert.Equal(t, []string{"x/one", "x/two"}, listed(t, x))
		all := ensure(t, targets, "o", Target{Cluster: "a", Kind: "ConfigMap"})
		assert.Len(t, listed(t, all), 3)
		_, err = all.Get()
		assert.ErrorContains(t, err, "no name")

		// Own writes are there at once (G4).
		require.NoError(t, k.Client.Create(t.Context(), targetMap("x", "none"), nil))
		o, err = none.Get()
		require.NoError(t, err)
		assert.Equal(t, "none", o.GetName())
		assert.NoError(t, targets.Status().Err())
	})
}

func TestTheMetadataOfATargetIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := targetMap("x", "one", "app")
		full.Data = map[string]string{"k": "v"}
		_, _, targets := newTargets(t, TargetOptions{Grace: -1}, full)
		target := cmTarget("x", "one")
		target.MetadataOnly = true
		r := ensure(t, targets, "o", target)
		o, err := r.Get()
		require.NoError(t, err)
		assert.Equal(t, "yes", o.GetLabels()["app"])
		assert.NotContains(t, o.Object, "data")

		whole := ensure(t, targets, "p", cmTarget("x", "one"))
		o, err = whole.Get()
		require.NoError(t, err)
		assert.Contains(t, o.Object, "data")
		targets.Drop("p")
		time.Sleep(time.Minute)
		o, err = r.Get()
		require.NoError(t, err)
		assert.NotContains(t, o.Object, "data", "nobody needs the whole object any more")
	})
}

func TestATargetThatMakesNoSenseIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, targets := newTargets(t, TargetOptions{})
		for text, target := range map[string]Target{
			"no cluster":         {Kind: "pods"},
			"no kind":            {Cluster: "a"},
			"both a name":        {Cluster: "a", Kind: "pods", Name: "x", LabelSelector: "x"},
			"namespace \"X\"":    {Cluster: "a", Kind: "pods", Namespace: "X"},
			"name \"a/b\"":       {Cluster: "a", Kind: "pods", Name: "a/b"},
			"selector \"a in\"":  {Cluster: "a", Kind: "pods", LabelSelector: "a in"},
			"selector \" \" say": {Cluster: "a", Kind: "pods", LabelSelector: " "},
		} {
			_, err := targets.Want("o", target)
			assert.ErrorContains(t, err, text)
			_, err = targets.Keep("o", cmTarget("x", "y"), target)
			assert.ErrorContains(t, err, text)
		}
		assert.Empty(t, targets.Status().Watches, "nothing has changed")

		// Whether a kind has namespaces, the cluster says. Other targets of the kind go on.
		for text, target := range map[string]Target{
			"no namespace":       {Cluster: "a", Kind: "namespaces", Namespace: "x"},
			"give the namespace": {Cluster: "a", Kind: "configmaps", Name: "x"},
		} {
			_, err := targets.Ensure(t.Context(), "o", target)
			assert.ErrorIs(t, err, ErrNotKnown)
			assert.ErrorContains(t, err, text)
			assert.ErrorContains(t, targets.Status().Err(), text)
			target.Namespace, target.Name = "", ""
			ensure(t, targets, "o", target)
		}
	})
}

func TestOwnersAreActivatedByTheirTargetsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a activations
		k := newCluster(t, "1", targetMap("x", "one", "app"), targetMap("x", "two"), targetMap("y", "two"))
		f := newFleet(t, Options{})
		targets := f.Targets(TargetOptions{Activate: a.activate})
		ctx := t.Context()
		for owner, target := range map[string]Target{
			"name": cmTarget("x", "one"), "same name": cmTarget("x", "one"), "other name": cmTarget("y", "two"),
			"labels": {Cluster: "a", Kind: "configmaps", LabelSelector: "app=yes"}, "labels in y": {Cluster: "a", Kind: "configmaps", LabelSelector: "app=yes", Namespace: "y"},
			"x": {Cluster: "a", Kind: "configmaps", Namespace: "x"}, "all": {Cluster: "a", Kind: "configmaps"},
		} {
			_, err := targets.Want(owner, target)
			require.NoError(t, err)
		}
		a.taken()
		// All are wanted by now: none is known as soon as it is wanted.
		require.NoError(t, f.Set(Member{Name: "a", Client: k.Client}))
		everyone := []string{"all", "labels", "labels in y", "name", "other name", "same name", "x"}
		time.Sleep(time.Minute)
		assert.Equal(t, everyone, a.taken(), "they have become known")

		r, err := targets.Want("late", cmTarget("x", "two"))
		require.NoError(t, err)
		_, err = r.Get()
		require.NoError(t, err, "the watch of the others shows it")
		time.Sleep(2 * time.Second)
		assert.Empty(t, a.taken(), "it was known from the start")
		targets.Drop("late")

		o := targetMap("x", "one", "app")
		o.Data = map[string]string{"k": "v"}
		require.NoError(t, k.Client.Update(ctx, o, nil))
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"all", "labels", "name", "same name", "x"}, a.taken())

		o.Labels = nil
		require.NoError(t, k.Client.Update(ctx, o, nil))
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"all", "labels", "name", "same name", "x"}, a.taken(), "it has left the selector")
		require.NoError(t, k.Client.Delete(ctx, o, nil))
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"all", "name", "same name", "x"}, a.taken())
		require.NoError(t, k.Client.Create(ctx, targetMap("y", "new", "app"), nil))
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"all", "labels", "labels in y"}, a.taken())

		targets.Drop("same name")
		require.NoError(t, k.Client.Create(ctx, targetMap("x", "one"), nil))
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"all", "name", "x"}, a.taken())

		f.Remove("a")
		assert.Equal(t, []string{"all", "labels", "labels in y", "name", "other name", "x"}, a.taken(), "the cluster has gone")
	})
}

func TestActivateDelaysNobodyAndMayPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, hold := make(chan []string, 10), make(chan struct{})
		_, k, targets := newTargets(t, TargetOptions{Activate: func(owners ...string) {
			slices.Sort(owners)
			calls <- owners
			<-hold
			panic("it panics")
		}}, targetMap("x", "one"))
		r := ensure(t, targets, "o", cmTarget("x", "one"))
		assert.Equal(t, []string{"o"}, <-calls)
		ensure(t, targets, "p", cmTarget("x", "two"))
		for range 5 {
			require.NoError(t, k.Client.Delete(t.Context(), targetMap("x", "one"), nil))
			require.NoError(t, k.Client.Create(t.Context(), targetMap("x", "one"), nil))
			time.Sleep(2 * time.Second)
		}
		_, err := r.Get()
		require.NoError(t, err)
		close(hold)
		assert.Equal(t, []string{"o", "p"}, <-calls, "the owners gather")
	})
}

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

func TestWhatNoOwnerNeedsIsStoppedAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, targets := newTargets(t, TargetOptions{Grace: time.Minute}, targetMap("x", "one"))
		r := ensure(t, targets, "o", cmTarget("x", "one"))
		other := ensure(t, targets, "p", cmTarget("x", "one"))
		targets.Drop("o")
		_, err := r.Get()
		assert.ErrorIs(t, err, ErrDropped)
		_, err = r.List()
		assert.ErrorIs(t, err, ErrDropped, "and no empty list")
		assert.ErrorIs(t, r.Err(), ErrDropped)
		_, err = other.Get()
		assert.NoError(t, err, "another owner needs it")
		targets.Drop("p")
		time.Sleep(59 * time.Second)
		assert.Equal(t, 1, watchOf(t, targets).Idle)
		ensure(t, targets, "o", cmTarget("x", "one"))
		_, err = r.Get()
		assert.NoError(t, err, "it was dropped, and is wanted again")
		time.Sleep(10 * time.Minute)
		_, err = r.Get()
		assert.NoError(t, err)
		targets.Drop("o")
		time.Sleep(61 * time.Second)
		synctest.Wait()
		assert.Empty(t, targets.Status().Watches)
		assert.Empty(t, k.Client.Status().Queries)
		ensure(t, targets, "o", cmTarget("x", "one"))
		_, err = r.Get()
		assert.NoError(t, err, "also when the watch is another one")
	})
}

// Owners want, read and drop targets at the very moments when their watch is stopped. Who has
// ensured a target can read it until it drops it.
func TestNoReaderHoldsAWatchThatWasStopped(t *testing.T) {
	k := newCluster(t, "1", targetMap("x", "one"))
	f := newFleet(t, Options{})
	require.NoError(t, f.Set(Member{Name: "a", Client: k.Client}))
	eventually(t, f, "the cluster is there", func() bool { return f.Cluster("a") != nil })
	targets := f.Targets(TargetOptions{Grace: -1})                 // stopped at once
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a dead watch would be waited for
	defer cancel()
	ensure(t, targets, "first", cmTarget("x", "one"))
	targets.mu.Lock()
	w := targets.watches[watchKey{"a", "configmaps"}]
	targets.mu.Unlock()
	require.False(t, targets.retire(w), "it was about to be stopped, and is wanted again")
	targets.Drop("first")
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() {
			owner := fmt.Sprint("o", i)
			for range 2000 {
				r, err := targets.Want(owner, cmTarget("x", "one"))
				if !assert.NoError(t, err) {
					return
				}
				for {
					_, err := targets.Ensure(ctx, owner, cmTarget("x", "one"))
					if err == nil {
						break
					}
					if !assert.ErrorIs(t, err, ErrNotKnown) || !assert.NoError(t, ctx.Err()) {
						return
					}
				}
				for range 3 {
					if o, err := r.Get(); !assert.NoError(t, err, "it was ensured, and nobody has dropped it") || !assert.Equal(t, "one", o.GetName()) {
						return
					}
				}
				targets.Drop(owner)
				_, err = r.Get()
				if !assert.ErrorIs(t, err, ErrDropped) {
					return
				}
			}
		})
	}
	running.Wait()
	synced := func() bool { return len(targets.Status().Watches) == 0 && len(k.Client.Status().Queries) == 0 }
	assert.Eventually(t, synced, time.Minute, time.Millisecond, "nothing is left")
}

// A watch that is given up, and is wanted again before its goroutine has ended it.
func TestATargetIsNotKnownByAWatchThatIsGivenUp(t *testing.T) {
	w := newTargetWatch(&Targets{}, watchKey{"a", "configmaps"})
	w.scope = scope{known: true, namespaced: true}
	of, err := check(cmTarget("x", "one"))
	require.NoError(t, err)
	w.add("o", of)
	p, ok := w.schedule.Next()
	require.True(t, ok)
	w.schedule.Start(p)
	w.schedule.Shown()
	shown := &following{}
	w.following = shown
	_, _, err = w.read(of.target)
	require.NoError(t, err)
	_, idle := w.idle()
	require.False(t, idle, "somebody needs it")

	w.drop("o", of.target)
	w.expire()
	former, idle := w.idle()
	require.True(t, idle)
	assert.Same(t, shown, former, "it is to be closed")
	of, err = check(of.target)
	require.NoError(t, err)
	w.add("o", of)
	_, news, err := w.read(of.target)
	assert.ErrorIs(t, err, ErrNotKnown)
	assert.NotNil(t, news)
}

func TestAnOwnerKeepsExactlyItsTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, targets := newTargets(t, TargetOptions{}, targetMap("x", "one"), targetMap("x", "two"))
		first, err := targets.Keep("o", cmTarget("x", "one"), cmTarget("x", "two"))
		require.NoError(t, err)
		second, err := targets.Keep("o", cmTarget("x", "two"), cmTarget("x", "three"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = first[0].Get()
		assert.ErrorIs(t, err, ErrDropped)
		_, err = first[1].Get()
		assert.NoError(t, err)
		assert.Equal(t, cmTarget("x", "three"), second[1].Target())
		assert.True(t, second[1].Complete())
		_, err = targets.Keep("o")
		require.NoError(t, err)
		assert.Zero(t, targets.Status().Owners)
	})
}

func TestAClusterThatDoesNotAnswerKeepsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a activations
		f, k, targets := newTargets(t, TargetOptions{Activate: a.activate}, targetMap("x", "one"))
		r := ensure(t, targets, "o", cmTarget("x", "one"))
		a.taken()
		hung := hang(k)
		time.Sleep(time.Minute)
		assert.Equal(t, Stale, f.Cluster("a").Health().Phase)
		assert.Equal(t, []string{"o"}, a.taken())
		_, err := r.Get()
		assert.NoError(t, err)
		since, stale := r.Stale()
		assert.True(t, stale)
		assert.NotZero(t, since)
		assert.ErrorContains(t, r.Err(), "stale")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err = targets.Ensure(ctx, "p", Target{Cluster: "a", Kind: "secrets", Namespace: "x"})
		assert.ErrorIs(t, err, ErrNotKnown)
		assert.ErrorContains(t, err, "the cluster does not answer: ")
		assert.Less(t, time.Since(began), time.Second, "it does not wait for the cluster")

		close(hung)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"o", "p"}, a.taken())
		_, stale = r.Stale()
		assert.False(t, stale)
		assert.NoError(t, r.Err())
	})
}

func TestEnsureEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, targets := newTargets(t, TargetOptions{})
		hung := hang(k)
		defer close(hung)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := targets.Ensure(ctx, "o", Target{Cluster: "a", Kind: "secrets"})
		assert.ErrorIs(t, err, ErrNotKnown)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = r.List()
		assert.ErrorIs(t, err, ErrNotKnown)
	})
}

// hang makes a fake answer no get or list until the channel is closed.
func hang(k *katestest.Fake) chan struct{} {
	hung := make(chan struct{})
	k.Dynamic.Lock()
	defer k.Dynamic.Unlock()
	for _, verb := range []string{"get", "list"} {
		k.Dynamic.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			select {
			case <-hung:
				return false, nil, nil
			case <-time.After(15 * time.Second): // the fake has no context
				return true, nil, errors.New("it takes too long")
			}
		})
	}
	return hung
}

func TestWhatTheTargetsHaveEndsWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, k, targets := newTargets(t, TargetOptions{}, targetMap("x", "one"))
		again := f.Targets(TargetOptions{})
		r, o := ensure(t, targets, "o", cmTarget("x", "one")), ensure(t, again, "o", cmTarget("x", "one"))
		targets.Close()
		_, err := r.Get()
		assert.ErrorIs(t, err, kates.ErrClosed)
		_, err = targets.Want("o", cmTarget("x", "two"))
		assert.ErrorIs(t, err, kates.ErrClosed)
		_, err = o.Get()
		assert.NoError(t, err, "those of others go on")
		f.Close()
		assert.Empty(t, k.Client.Status().Queries)
		_, err = o.Get()
		assert.ErrorIs(t, err, kates.ErrClosed)
		_, err = f.Targets(TargetOptions{}).Keep("o", cmTarget("x", "two"))
		assert.ErrorIs(t, err, kates.ErrClosed)
		targets.Close()
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
