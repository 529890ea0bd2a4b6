package kates_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type services struct {
	Services []*kates.Service
	Deltas   []*kates.Delta
}

func TestUpdateFillsAFreshStructAndSaysWhetherAnythingChanged(t *testing.T) {
	c := katestest.NewClient(t, service("a", "x"))
	s, snap := first[services](t, c)
	assert.Len(t, snap.Deltas, 1)
	var fresh services
	changed, err := s.Update(t.Context(), &fresh)
	require.NoError(t, err)
	assert.False(t, changed)
	assert.Equal(t, snap.Services, fresh.Services, "a fresh struct works")
	assert.Same(t, &snap.Services[0], &fresh.Services[0], "it is the very same slice")
	assert.Empty(t, fresh.Deltas)
	snap.Services = nil // the struct is the caller's
	changed, err = s.Update(t.Context(), snap)
	require.NoError(t, err)
	assert.False(t, changed)
	assert.Len(t, snap.Services, 1)
}

func TestTheFirstCompleteSnapshotIsAChangeAlsoWhenItIsEmpty(t *testing.T) {
	_, snap := first[services](t, katestest.NewClient(t)) // it requires a change
	assert.NotNil(t, snap.Services)
	assert.Empty(t, snap.Services)
}

func TestOnAnErrorTheStructIsUntouchedAndNothingIsConsumed(t *testing.T) {
	c := katestest.NewClient(t, service("a", "x"))
	acc, err := c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "services"})
	require.NoError(t, err)
	<-acc.Changed()
	var bad struct{ Services []string }
	_, err = acc.Update(t.Context(), &bad)
	require.Error(t, err)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	var snap struct{ Services []*kates.Service }
	_, err = acc.Update(done, &snap)
	assert.ErrorIs(t, err, context.Canceled, "every other context bounds its call only")
	assert.Nil(t, snap.Services)
	var deltas []*kates.Delta
	changed, err := acc.UpdateWithDeltas(t.Context(), &snap, &deltas)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Len(t, deltas, 1)
	deltas = append(deltas, nil)
	changed, err = acc.UpdateWithDeltas(t.Context(), &snap, &deltas)
	require.NoError(t, err)
	assert.False(t, changed)
	assert.Empty(t, deltas, "overwritten")
	_, err = acc.UpdateWithDeltas(t.Context(), &snap, nil)
	assert.NoError(t, err)
}

func TestAfterTheEndUpdateSaysWhy(t *testing.T) {
	c := katestest.NewClient(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	acc, err := c.Watch(ctx, kates.Query{Name: "Services", Kind: "services"})
	require.NoError(t, err)
	closed, err := c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "services"})
	require.NoError(t, err)
	cancel(why)
	for range acc.Changed() {
	}
	var snap struct{ Services []*kates.Service }
	changed, err := acc.Update(t.Context(), &snap)
	assert.False(t, changed)
	assert.ErrorIs(t, err, why)
	assert.ErrorIs(t, err, context.Canceled)
	closed.Close()
	for range closed.Changed() {
	}
	_, err = closed.Update(t.Context(), &snap)
	assert.ErrorIs(t, err, kates.ErrClosed)
	_, err = c.Watch(ctx, kates.Query{Name: "Services", Kind: "services"})
	assert.ErrorIs(t, err, context.Canceled)
	c.Close()
	_, err = c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "services"})
	assert.ErrorIs(t, err, kates.ErrClosed)
}

func TestAllYieldsFreshStructsBreakStopsNothingAndRangingGoesOn(t *testing.T) {
	c := katestest.NewClient(t, service("a", "x")).With(kates.WithInterval(0))
	s, err := kates.Watch[services](t.Context(), c)
	require.NoError(t, err)
	var before *services
	for snap, err := range s.All(t.Context()) {
		require.NoError(t, err)
		before = snap
		break
	}
	for snap, err := range s.All(t.Context()) {
		require.NoError(t, err)
		assert.NotSame(t, before, snap)
		assert.Equal(t, before.Services, snap.Services, "the current one again")
		assert.Empty(t, snap.Deltas, "nothing has changed since")
		break
	}
	require.NoError(t, c.Create(t.Context(), service("a", "y"), nil))
	var mine services
	_, err = s.Update(t.Context(), &mine)
	require.NoError(t, err)
	assert.Len(t, mine.Deltas, 1)
	for snap := range s.All(t.Context()) {
		assert.Len(t, snap.Services, 2)
		assert.Empty(t, snap.Deltas, "it shares its cursor with Update")
		s.Close() // ends the loop without an error
	}
}

func TestAllEndsSilentlyWhenCancelledAndWithOneErrorOtherwise(t *testing.T) {
	c := katestest.NewClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := kates.Watch[services](ctx, c)
	require.NoError(t, err)
	n := 0
	for _, err := range s.All(t.Context()) {
		require.NoError(t, err)
		n++
		cancel()
	}
	assert.Equal(t, 1, n, "cancelling the context of Watch")
	s, err = kates.Watch[services](t.Context(), c)
	require.NoError(t, err)
	mine, stop := context.WithCancel(t.Context())
	defer stop()
	for _, err := range s.All(mine) {
		require.NoError(t, err)
		stop()
	}
	for snap, err := range s.All(t.Context()) {
		require.NoError(t, err)
		assert.NotNil(t, snap, "that of All bounds the loop only")
		break
	}
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewClient(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := kates.Watch[services](ctx, c)
		require.NoError(t, err)
		var ends []error
		for snap, err := range s.All(t.Context()) {
			if err != nil {
				assert.Nil(t, snap)
				ends = append(ends, err)
			}
		}
		require.Len(t, ends, 1, "once, last")
		assert.ErrorIs(t, ends[0], context.DeadlineExceeded)
	})
}

func TestTheDefaultIntervalIsOneSecondAndSettable(t *testing.T) {
	for interval, set := range map[time.Duration]func(*kates.Client) *kates.Client{
		time.Second:     func(c *kates.Client) *kates.Client { return c },
		7 * time.Second: func(c *kates.Client) *kates.Client { return c.With(kates.WithInterval(7 * time.Second)) },
		3 * time.Second: func(c *kates.Client) *kates.Client {
			require.NoError(t, c.MaxAccumulatorInterval(3*time.Second))
			assert.Error(t, c.MaxAccumulatorInterval(0))
			return c
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := set(katestest.NewClient(t))
			s, err := kates.Watch[services](t.Context(), c)
			require.NoError(t, err)
			<-s.Changed()
			_, err = s.Update(t.Context(), &services{})
			require.NoError(t, err)
			start := time.Now()
			require.NoError(t, c.Create(t.Context(), service("a", "x"), nil))
			<-s.Changed()
			assert.Equal(t, interval, time.Since(start))
			_, err = s.Update(t.Context(), &services{})
			require.NoError(t, err)
			<-time.After(time.Minute)
			start = time.Now()
			require.NoError(t, c.Create(t.Context(), service("a", "y"), nil))
			<-s.Changed()
			assert.Zero(t, time.Since(start), "at once after quiet")
			s.Close()
		})
	}
}

func TestAPredicateSeesTheServersObjectAndStaysInForce(t *testing.T) {
	c := katestest.NewClient(t, service("a", "x"), service("a", "y")).With(kates.WithInterval(0))
	acc, err := c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "services"})
	require.NoError(t, err)
	<-acc.Changed()
	asked := 0
	onlyX := func(u *kates.Unstructured) bool {
		asked++
		assert.Equal(t, "Service", u.GetKind())
		return u.GetName() == "x"
	}
	var snap struct{ Services []*kates.Service }
	var deltas []*kates.Delta
	_, err = acc.FilteredUpdate(t.Context(), &snap, &deltas, onlyX)
	require.NoError(t, err)
	assert.Len(t, snap.Services, 1)
	assert.Len(t, deltas, 1, "one never shown gives no delta")
	changed, err := acc.FilteredUpdate(t.Context(), &snap, &deltas, onlyX)
	require.NoError(t, err)
	assert.False(t, changed)
	assert.Equal(t, 2, asked, "once per change")
	require.NoError(t, c.Create(t.Context(), service("a", "z"), nil))
	changed, err = acc.Update(t.Context(), &snap)
	require.NoError(t, err)
	assert.True(t, changed, "in force for a plain Update, and what it leaves out counts")
	assert.Len(t, snap.Services, 1)
	changed, err = acc.FilteredUpdate(t.Context(), &snap, &deltas, nil)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Len(t, snap.Services, 3)
	assert.Len(t, deltas, 2)
}

// TestAPredicateMadeAnewForEachCallJudgesOnlyWhatHasChanged: programs write the closure into the
// call.
func TestAPredicateMadeAnewForEachCallJudgesOnlyWhatHasChanged(t *testing.T) {
	c := katestest.NewClient(t, service("a", "x"), service("a", "y")).With(kates.WithInterval(0))
	acc, err := c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "services"})
	require.NoError(t, err)
	<-acc.Changed()
	var snap struct{ Services []*kates.Service }
	asked, wanted := 0, "x"
	update := func() bool {
		t.Helper()
		name := wanted
		changed, err := acc.FilteredUpdate(t.Context(), &snap, nil, func(u *kates.Unstructured) bool { asked++; return u.GetName() == name })
		require.NoError(t, err)
		return changed
	}
	assert.True(t, update())
	assert.False(t, update())
	require.NoError(t, c.Create(t.Context(), service("a", "z"), nil))
	assert.True(t, update(), "there is another one that it leaves out")
	assert.False(t, update())
	assert.Equal(t, 3, asked, "once per change")

	wanted = "z"
	for len(acc.Changed()) > 0 {
		<-acc.Changed()
	}
	acc.Rejudge()
	<-acc.Changed()
	assert.True(t, update())
	require.Len(t, snap.Services, 1)
	assert.Equal(t, "z", snap.Services[0].Name)
	assert.Equal(t, 6, asked)
	assert.False(t, update())
	assert.Equal(t, 6, asked)
}

// TestAPredicateMayRejectWithAReason: the reason is a part of the snapshot, and so is its change.
func TestAPredicateMayRejectWithAReason(t *testing.T) {
	bad := service("a", "bad")
	bad.Annotations = map[string]string{"why": "no port"}
	c := katestest.NewClient(t, service("a", "x"), service("a", "other"), bad).With(kates.WithInterval(0))
	acc, err := c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "services"})
	require.NoError(t, err)
	<-acc.Changed()
	var snap struct{ Services []*kates.Service }
	var deltas []*kates.Delta
	var invalid []kates.Invalid
	update := func() bool {
		t.Helper()
		changed, err := acc.JudgedUpdate(t.Context(), &snap, &deltas, &invalid, func(u *kates.Unstructured) (bool, error) {
			if why := u.GetAnnotations()["why"]; why != "" {
				return false, errors.New(why)
			}
			return u.GetName() == "x" || u.GetName() == "bad", nil
		})
		require.NoError(t, err)
		return changed
	}
	why := func() (all []string) {
		for _, i := range invalid {
			all = append(all, i.Query+" "+i.Object.GetName()+": "+i.Err.Error())
		}
		return all
	}
	annotate := func(text string) {
		t.Helper()
		_, err := kates.Modify(t.Context(), c, bad, func(s *kates.Service) error { s.Annotations = map[string]string{"why": text}; return nil })
		require.NoError(t, err)
	}
	assert.True(t, update())
	assert.Equal(t, []string{"Services bad: no port"}, why())
	assert.Len(t, snap.Services, 1)
	assert.False(t, update())

	annotate("no selector")
	assert.True(t, update(), "another reason is a change")
	assert.Equal(t, []string{"Services bad: no selector"}, why())
	assert.Empty(t, deltas)

	annotate("")
	assert.True(t, update())
	assert.Empty(t, invalid)
	assert.Len(t, snap.Services, 2)
	assert.Len(t, deltas, 1)
}

func TestReadyNeverTurnsBackAndStatusSaysWhatIsWrongNow(t *testing.T) {
	for _, outage := range podsOutages {
		synctest.Test(t, func(t *testing.T) {
			fake, pods := unreliable(t, kates.WithLogger(slog.New(slog.DiscardHandler)))
			s, _ := first[podsAndServices](t, fake.Client)
			ready := func(when string) {
				t.Helper()
				assert.NoError(t, s.Ready(), when)
				assert.NoError(t, fake.Client.Ready(), when)
			}
			well := func(when string) {
				t.Helper()
				ready(when)
				assert.NoError(t, s.Status().Err(), when)
				assert.NoError(t, fake.Client.Status().Err(), when)
				assert.Equal(t, kates.StateSynced, s.Status().Queries[0].State, when)
				assert.Regexp(t, `Pods .*synced`, s.Status().String(), when)
			}
			assert.Len(t, fake.Client.Status().Queries, 2)
			well("at first")
			for range 2 {
				pods.cut(outage)
				<-time.After(time.Minute)
				ready("in an outage")
				for _, now := range []kates.Status{s.Status(), fake.Client.Status()} {
					assert.ErrorContains(t, now.Err(), `query "Pods"`)
					assert.ErrorContains(t, now.Err(), outage.Error())
					assert.Contains(t, now.String(), outage.Error())
					assert.NotEqual(t, kates.StateSynced, now.Queries[0].State)
					assert.Equal(t, kates.StateSynced, now.Queries[1].State, "the other kind is well")
				}
				pods.set(nil)
				<-time.After(2 * time.Minute)
				well("after an outage")
			}
		})
	}
}
