package fleet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
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

// There is no moment at which no cluster has the name.
func TestOwnersLearnThatAnotherClusterHasTakenTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a activations
		f, _, targets := newTargets(t, TargetOptions{Activate: a.activate}, targetMap("x", "one"))
		r := ensure(t, targets, "o", cmTarget("x", "one"))
		a.taken()
		other := newCluster(t, "2")
		var refused atomic.Bool
		refused.Store(true)
		on(other, "list", "configmaps", &refused, errors.New("not now"))
		require.NoError(t, f.Set(Member{Name: "a", Client: other.Client}))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"o"}, a.taken(), "it is not known any more")
		_, err := r.Get()
		assert.ErrorIs(t, err, ErrNotKnown)
		refused.Store(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"o"}, a.taken(), "it is known")
		_, err = r.Get()
		assert.True(t, kates.IsNotFound(err), "%v", err)
	})
}

// An owner may be dropped when its targets have changed, and before it is told.
func TestAnOwnerThatWasDroppedIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a activations
		_, _, targets := newTargets(t, TargetOptions{Activate: a.activate}, targetMap("x", "one"))
		ensure(t, targets, "o", cmTarget("x", "one"))
		ensure(t, targets, "dropped", cmTarget("x", "one"))
		a.taken()
		targets.Drop("dropped")
		targets.activate(map[string]struct{}{"o": {}, "dropped": {}})
		assert.Equal(t, []string{"o"}, a.taken())
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

func TestAnOwnerKeepsExactlyItsTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, targets := newTargets(t, TargetOptions{}, targetMap("x", "one"), targetMap("x", "two"))
		first, err := targets.Keep("o", cmTarget("x", "one"), cmTarget("x", "two"))
		require.NoError(t, err)
		second, err := targets.Keep("o", cmTarget("x", "two"), cmTarget("x", "three"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = first[0].Get()
		assert.ErrorIs(t, err, ErrTargetDropped)
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
