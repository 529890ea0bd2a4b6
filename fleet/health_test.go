package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// probe expects an answer of a health check.
func probe(t *testing.T, f http.HandlerFunc, code int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	f(w, httptest.NewRequest(http.MethodGet, "/?verbose", nil))
	if w.Code != code || w.Body.String() != text {
		t.Errorf("%d:\n%s\nnot %d:\n%s", w.Code, w.Body, code, text)
	}
}

func TestAClusterThatIsAwayMakesAProgramNeitherUnreadyNorUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := katestest.New(t)
		f := newFleet(t, Options{Home: home.Client})
		probe(t, f.Readyz, 500, "[+]sources ok\n[-]home: watches failed: no watch is open yet\nreadyz check failed\n")
		_, err := kates.Watch[allAtHome](t.Context(), home.Client)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		probe(t, f.Readyz, 200, "[+]sources ok\n[+]home: watch fleet.allAtHome ok\nreadyz check passed\n")
		a := newCluster(t, "1", configMap("x"))
		var away atomic.Bool
		away.Store(true)
		on(a, "list", "configmaps", &away, errors.New("no answer"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		runEach(t, f, newOutputs(t).call)
		for range 100 {
			time.Sleep(10 * time.Second)
			if err := errors.Join(f.HealthCheck(nil), f.ReadyCheck(nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAFleetThatWasReadyStaysReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := katestest.New(t)
		f := newFleet(t, Options{Home: home.Client})
		ctx, cancel := context.WithCancel(t.Context())
		_, err := kates.Watch[allAtHome](ctx, home.Client)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		probe(t, f.Readyz, 200, "[+]sources ok\n[+]home: watch fleet.allAtHome ok\nreadyz check passed\n")
		f.ready.Store(false)
		if err := f.ReadyCheck(nil); err != nil {
			t.Error(err)
		}
		cancel()
		f.Close()
		synctest.Wait()
		for _, s := range f.sources {
			s.said = false // no source takes that back
		}
		probe(t, f.Readyz, 200, "[+]sources ok\n[+]home: watches ok\nreadyz check passed\n")
	})
}

type allAtHome struct{ ConfigMaps []*kates.ConfigMap }

func TestAFleetSaysInWhichClusterSomethingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1", configMap("x")), newCluster(t, "2", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		end := runEach(t, f, func(ctx context.Context, key Key, _ *perName) error {
			if key.Cluster == "b" {
				<-ctx.Done()
			}
			return nil
		}, kates.WithUnhealthyAfter(time.Minute))
		time.Sleep(time.Minute)
		if err := f.HealthCheck(nil); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		err := f.HealthCheck(nil)
		if err == nil {
			t.Fatal("a call hangs, and the fleet is healthy")
		}
		const says = "cluster b: run fleet.perName: 1 of its calls have not ended in time, one for 2m0s"
		if text := err.Error(); len(text) < len(says) || text[:len(says)] != says {
			t.Error(text)
		}
		_ = end()
	})
}

func TestACallForTheWholeFleetThatTakesTooLongIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1", configMap("x"))
		_ = f.Set(Member{Name: "a", Client: a.Client})
		ended := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			ended <- Run(ctx, f, func(ctx context.Context, _ *allMaps) error { <-ctx.Done(); return nil }, kates.WithUnhealthyAfter(time.Minute))
		}()
		time.Sleep(time.Hour)
		if f.HealthCheck(nil) == nil {
			t.Error("it hangs")
		}
		cancel()
		if err := errors.Join(<-ended, f.HealthCheck(nil)); err != nil {
			t.Error(err)
		}
	})
}
