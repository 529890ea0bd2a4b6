package kates_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// asked returns the answer of a health check.
func asked(f http.HandlerFunc, method, url string) (code int, text string) {
	w := httptest.NewRecorder()
	f(w, httptest.NewRequest(method, url, nil))
	return w.Code, w.Body.String()
}

func TestReadyzIsReadyOnceCompleteAndNeverBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent), katestest.WithObjects(configMap("a")))
		var refuses atomic.Bool
		refuses.Store(true)
		react(fake, "list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refuses.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "hidden-name", errors.New("hidden-text"))
		})
		c := fake.Client
		ready := func(query string) (int, string) { return asked(c.Readyz, http.MethodGet, "/readyz"+query) }
		code, text := ready("")
		assert.Equal(t, 500, code)
		assert.Equal(t, "[-]watches failed: no watch is open yet\nreadyz check failed\n", text)
		assert.Error(t, c.ReadyCheck(nil))

		type both struct {
			ConfigMaps []*kates.ConfigMap
			Secrets    []*kates.Secret
		}
		_, err := kates.Watch[maps](t.Context(), c)
		require.NoError(t, err)
		_, err = kates.Watch[both](t.Context(), c)
		require.NoError(t, err)
		synctest.Wait()
		code, text = ready("?verbose")
		assert.Equal(t, 500, code)
		assert.Equal(t, "[-]watch kates_test.both failed: query \"Secrets\" (Secret) is forbidden\n"+
			"[+]watch kates_test.maps ok\nreadyz check failed\n", text)
		assert.ErrorContains(t, c.ReadyCheck(nil), "hidden-text", "the error of the check is for those who run the program")

		refuses.Store(false)
		time.Sleep(time.Minute)
		code, text = ready("")
		assert.Equal(t, 200, code)
		assert.Equal(t, "ok", text)
		_, text = ready("?verbose")
		assert.Equal(t, "[+]watch kates_test.both ok\n[+]watch kates_test.maps ok\nreadyz check passed\n", text)

		refuses.Store(true)
		_, err = kates.Watch[mapsAndDeltas](t.Context(), c, kates.Query{Name: "Secrets", LabelSelector: "new"})
		require.NoError(t, err)
		synctest.Wait()
		require.Error(t, c.Ready(), "Ready counts a watch that was opened later")
		for range 2 {
			code, _ = ready("")
			assert.Equal(t, 200, code)
			require.NoError(t, c.ReadyCheck(nil))
			c.Close()
		}
	})
}

func TestHealthChecksAnswerReadsAloneAndInPlainText(t *testing.T) {
	fake := katestest.New(t, katestest.WithClientOptions(silent))
	for _, f := range []http.HandlerFunc{fake.Client.Healthz, fake.Client.Readyz} {
		code, _ := asked(f, http.MethodPost, "/")
		assert.Equal(t, 405, code)
		w := httptest.NewRecorder()
		f(w, httptest.NewRequest(http.MethodHead, "/?verbose", nil))
		assert.Empty(t, w.Body.String())
		assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
}

// hangsFor makes a client of which something hangs until the test ends, and returns it.
type hangsFor func(t *testing.T, hang func()) *kates.Client

func fakeOf(t *testing.T, options ...kates.Option) *kates.Client {
	options = append(options, silent, kates.WithInterval(0))
	return katestest.New(t, katestest.WithoutMutationDetector(), katestest.WithClientOptions(options...), katestest.WithObjects(configMap("a"))).Client
}

func watchMaps(t *testing.T, c *kates.Client, q kates.Query) *kates.Snapshots[maps] {
	q.Name = "ConfigMaps"
	s, err := kates.Watch[maps](t.Context(), c, q)
	require.NoError(t, err)
	return s
}

var hanged = map[string]struct {
	of   hangsFor
	text string
}{
	"transform": {func(t *testing.T, hang func()) *kates.Client {
		c := fakeOf(t)
		watchMaps(t, c, kates.Query{Transform: kates.TransformOf(func(metav1.Object) error { hang(); return nil })})
		return c
	}, "[-]stream v1/configmaps failed: a step, in the transform, has not ended for 2m5s\n[+]watch kates_test.maps ok\nhealthz check failed\n"},
	"signal": {func(t *testing.T, hang func()) *kates.Client {
		c := fakeOf(t)
		s := watchMaps(t, c, kates.Query{Signal: kates.SignalOf(func(_, _ metav1.Object) bool { hang(); return true })})
		go func() { // like another program
			time.Sleep(time.Second)
			_, _ = s.Update(t.Context(), &maps{})
			other := c.DynamicInterface().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
			u, _ := kates.NewUnstructuredFromObject(configMap("b"))
			_, _ = other.Create(t.Context(), u, metav1.CreateOptions{})
		}()
		return c
	}, "[-]stream v1/configmaps failed: a step, in the function that judges what is worth a signal, has not ended for 2m5s\n[+]watch kates_test.maps ok\nhealthz check failed\n"},
	"own write": {func(t *testing.T, hang func()) *kates.Client {
		c := fakeOf(t)
		watchMaps(t, c, kates.Query{Transform: kates.TransformOf(func(o metav1.Object) error {
			if o.GetName() == "b" {
				hang()
			}
			return nil
		})})
		go func() {
			time.Sleep(time.Second)
			_ = c.Create(t.Context(), configMap("b"), nil)
		}()
		return c
	}, "[-]stream v1/configmaps failed: a step, in the transform, has not ended for 2m5s\n[+]watch kates_test.maps ok\n" +
		"[-]an own write, as v1/configmaps shows it (Where, Transform, Signal) failed: it has not ended for 2m9s\nhealthz check failed\n"},
	"key": {func(t *testing.T, hang func()) *kates.Client {
		c := fakeOf(t)
		p, err := kates.WatchEach[maps](t.Context(), c, kates.Query{Name: "ConfigMaps", Key: kates.KeyOf(func(metav1.Object) []string { hang(); return nil })})
		require.NoError(t, err)
		go func() { _, _ = p.Next(t.Context()) }()
		return c
	}, "[+]stream v1/configmaps ok\n[-]watch kates_test.maps failed: the reader's turn, in the Key function, has not ended for 2m5s\nhealthz check failed\n"},
	"predicate": {func(t *testing.T, hang func()) *kates.Client {
		c := fakeOf(t)
		acc, err := c.Watch(t.Context(), kates.Query{Name: "ConfigMaps", Kind: "configmaps"})
		require.NoError(t, err)
		go func() {
			<-acc.Changed()
			_, _ = acc.FilteredUpdate(t.Context(), &maps{}, nil, func(*kates.Unstructured) bool { hang(); return true })
		}()
		return c
	}, "[+]stream v1/configmaps ok\n[-]watch ConfigMaps failed: the reader's turn, in the predicate, has not ended for 2m5s\nhealthz check failed\n"},
	"observer": {func(t *testing.T, hang func()) *kates.Client {
		c := fakeOf(t, kates.WithObserver(hanging{hang: hang}))
		go func() { _ = kates.Run(t.Context(), c, func(context.Context, *maps) error { return nil }) }()
		return c
	}, "[+]stream v1/configmaps ok\n[+]watch kates_test.maps ok\n[-]Observer.Call failed: it has not ended for 2m10s\nhealthz check failed\n"},
}

type hanging struct {
	breaking
	hang func()
}

func (h hanging) Call(ctx context.Context, _ kates.CallInfo) (context.Context, func(kates.CallResult)) {
	h.hang()
	return ctx, nil
}

func TestAFunctionOfTheUserThatHangsMakesTheClientUnhealthy(t *testing.T) {
	for name, one := range hanged {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				c := one.of(t, func() { <-release })
				healthz := func() (int, string) { return asked(c.Healthz, http.MethodGet, "/healthz") }
				time.Sleep(5 * time.Second)
				code, text := healthz()
				assert.Equal(t, 200, code, text)
				for range 11 {
					time.Sleep(10 * time.Second)
					code, text = healthz()
					assert.Equal(t, 200, code, text)
				}
				time.Sleep(15 * time.Second)
				code, text = healthz()
				assert.Equal(t, 500, code)
				assert.Equal(t, one.text, text)
				assert.Error(t, c.HealthCheck(nil))
				close(release)
				synctest.Wait()
				assert.NoError(t, c.HealthCheck(nil))
				c.Close()
				assert.NoError(t, c.HealthCheck(nil), "what is closed does not hang")
			})
		})
	}
}

// probedForHours asks for a client's health for some hours, as a kubelet does.
func probedForHours(t *testing.T, c *kates.Client) {
	t.Helper()
	for range 1000 {
		require.NoError(t, c.HealthCheck(nil))
		time.Sleep(10 * time.Second)
	}
}

func TestAnOutageABackoffAndAProgramThatPausesAreHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)), katestest.WithObjects(configMap("a")))
		react(fake, "list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("broken"))
		})
		_, err := kates.Watch[mapsAndDeltas](t.Context(), fake.Client) // nobody calls Update
		require.NoError(t, err)
		r := run(t, fake.Client, func(context.Context, *maps) error { return errors.New("not now") })
		slow := run(t, fake.Client, func(ctx context.Context, _ *maps) error { <-ctx.Done(); return ctx.Err() })
		for i := range 20 {
			put(t, fake, "a", string(rune('a'+i)))
		}
		probedForHours(t, fake.Client)
		r.stop()
		slow.stop()
	})
}

func TestACallThatTakesTooLongIsUnhealthyIfTheOptionSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeOf(t)
		var id string
		r := run(t, c, func(ctx context.Context, _ *maps) error {
			id = kates.CallIDFromContext(ctx)
			<-ctx.Done()
			return ctx.Err()
		}, kates.WithUnhealthyAfter(time.Hour))
		time.Sleep(time.Hour)
		synctest.Wait()
		_, text := asked(c.Healthz, http.MethodGet, "/?verbose")
		assert.Equal(t, "[+]stream v1/configmaps ok\n[+]watch kates_test.maps ok\n[+]run kates_test.maps ok\nhealthz check passed\n", text)
		time.Sleep(time.Second)
		_, text = asked(c.Healthz, http.MethodGet, "/")
		assert.Contains(t, text, "[-]run kates_test.maps failed: 1 of its calls have not ended in time, one for 1h0m1s (reconcileID "+id+")\n")
		r.stop()
		assert.NoError(t, c.HealthCheck(nil))
		err := kates.Run(t.Context(), c, func(context.Context, *maps) error { return nil }, kates.WithUnhealthyAfter(0))
		assert.ErrorContains(t, err, "WithUnhealthyAfter is 0s: it must be positive")
	})
}

func TestTheHangTimeoutIsAnOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeOf(t, kates.WithHangTimeout(time.Second))
		release := make(chan struct{})
		watchMaps(t, c, kates.Query{Transform: kates.TransformOf(func(metav1.Object) error { <-release; return nil })})
		time.Sleep(time.Minute)
		require.NoError(t, c.HealthCheck(nil), "nobody has looked before")
		time.Sleep(time.Second)
		require.NoError(t, c.HealthCheck(nil))
		time.Sleep(time.Second)
		require.Error(t, c.HealthCheck(nil))
		close(release)
		_, err := katestest.NewFake(katestest.WithClientOptions(kates.WithHangTimeout(-1)))
		require.ErrorContains(t, err, "WithHangTimeout is -1ns")
	})
}
