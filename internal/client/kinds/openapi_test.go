package kinds

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

func declaringServer(t *testing.T) (*kindstest.Server, *Resolver, *testclock.FakePassiveClock) {
	s, r, clock := backends["aggregated"](t)
	s.Declare("spec.hostname", "spec.count")
	return s, r, clock
}

func TestDeclaredFieldsAreReadOnceUntilTheCacheIsInvalidated(t *testing.T) {
	s, r, clock := declaringServer(t)
	for range 3 {
		f, err := r.Declared(t.Context(), kindstest.HostKind, []string{"spec.hostname"})
		require.NoError(t, err)
		assert.Equal(t, []string{"spec.count", "spec.hostname"}, f.Names())
		clock.SetTime(clock.Now().Add(time.Hour))
	}
	assert.Equal(t, 1, s.Requests()[kindstest.OpenAPIIndex])
	assert.Equal(t, 1, s.Requests()[kindstest.HostsDocument])
	require.NoError(t, r.Invalidate())
	s.Declare("spec.hostname")
	f, err := r.Declared(t.Context(), kindstest.HostKind, []string{"spec.hostname"})
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.hostname"}, f.Names())
	assert.Equal(t, 2, s.Requests()[kindstest.HostsDocument])
}

func TestAFieldThatIsNotDeclaredYetIsLookedForAgainOnceASecond(t *testing.T) {
	s, r, clock := declaringServer(t)
	for range 3 {
		_, err := r.Declared(t.Context(), kindstest.HostKind, []string{"spec.late"})
		assert.ErrorContains(t, err, "spec.late")
	}
	assert.Equal(t, 1, s.Requests()[kindstest.HostsDocument])
	s.Declare("spec.late")
	clock.SetTime(clock.Now().Add(resetInterval))
	f, err := r.Declared(t.Context(), kindstest.HostKind, []string{"spec.late"})
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.late"}, f.Names())
	assert.Equal(t, 2, s.Requests()[kindstest.HostsDocument])
}

func TestOpenAPIThatCannotBeReadDeclaresNothingUntilItCan(t *testing.T) {
	for name, broken := range map[string]func(*kindstest.Server){
		"no index":        func(s *kindstest.Server) { s.Respond(kindstest.OpenAPIIndex, http.StatusNotFound, "") },
		"forbidden":       func(s *kindstest.Server) { s.Respond(kindstest.OpenAPIIndex, http.StatusForbidden, "{}") },
		"no such group":   func(s *kindstest.Server) { s.Respond(kindstest.OpenAPIIndex, http.StatusOK, `{"paths":{}}`) },
		"odd index":       func(s *kindstest.Server) { s.Respond(kindstest.OpenAPIIndex, http.StatusOK, `"`) },
		"no document":     func(s *kindstest.Server) { s.Respond(kindstest.HostsDocument, http.StatusInternalServerError, "") },
		"odd document":    func(s *kindstest.Server) { s.Respond(kindstest.HostsDocument, http.StatusOK, `{"components":7}`) },
		"another's field": func(s *kindstest.Server) { s.Declare() },
	} {
		t.Run(name, func(t *testing.T) {
			s, r, clock := declaringServer(t)
			broken(s)
			f, err := r.Declared(t.Context(), kindstest.HostKind, []string{"spec.hostname"})
			assert.Error(t, err)
			assert.Empty(t, f)
			s.Declare("spec.hostname")
			clock.SetTime(clock.Now().Add(resetInterval))
			f, err = r.Declared(t.Context(), kindstest.HostKind, []string{"spec.hostname"})
			assert.NoError(t, err)
			assert.Len(t, f, 1)
		})
	}
}

func TestConcurrentReadersOfOpenAPIShareOneReadingAndKeepTheirContexts(t *testing.T) {
	s, r, _ := declaringServer(t)
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	s.Change(func() {
		s.Hook = func(request *http.Request) {
			if request.URL.Path == kindstest.OpenAPIIndex {
				arrived <- struct{}{}
				select {
				case <-release:
				case <-request.Context().Done():
				}
			}
		}
	})
	errs := make(chan error, 10)
	ask := func(ctx context.Context) {
		_, err := r.Declared(ctx, kindstest.HostKind, []string{"spec.hostname"})
		errs <- err
	}
	first, cut := context.WithCancel(t.Context())
	go ask(first)
	<-arrived
	impatient, leave := context.WithCancel(t.Context())
	leave()
	ask(impatient)
	require.ErrorIs(t, <-errs, context.Canceled, "whoever waits may leave")
	for range 5 {
		go ask(t.Context())
	}
	cut()
	require.ErrorIs(t, <-errs, context.Canceled)
	select {
	case <-arrived: // one of the others reads it in its place
	case err := <-errs:
		require.NoError(t, err, "it was not theirs that ended")
	}
	close(release)
	for range 5 {
		require.NoError(t, <-errs)
	}
	assert.Equal(t, 2, s.Requests()[kindstest.OpenAPIIndex])
}
