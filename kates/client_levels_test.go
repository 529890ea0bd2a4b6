package kates_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	errBroken    = apierrors.NewInternalError(errors.New("broken"))
)

func TestWhatKeepsAProgramFromStartingIsLoggedAsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		optional bool
		errors   int // how many are logged: the list fails, there is no snapshot
	}{
		"refused":   {errForbidden, false, 2},
		"an outage": {errBroken, false, 2},
		// there is no snapshot yet
		"asked to wait":       {apierrors.NewTooManyRequests("storage is (re)initializing", 1), false, 1},
		"refused, optional":   {errForbidden, true, 0},
		"an outage, optional": {errBroken, true, 2}, // the snapshot waits for it as well
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake, out, _ := failing(t, c.err)
				s, err := kates.Watch[podsAndServices](t.Context(), fake.Client, kates.Query{Name: "Pods", Optional: c.optional})
				require.NoError(t, err)
				<-time.After(time.Minute)
				assert.Equal(t, c.errors, out.count("level=ERROR"), &out.text)
				informed := out.count(`level=INFO msg="cannot list, will keep trying"`)
				assert.Equal(t, c.errors+informed, out.count(` err="`), "the error is one")
				assert.Equal(t, 1, out.count(`msg="cannot list, will keep trying" resource=v1/pods namespace=""`))
				s.Close()
			})
		})
	}
}

func TestAnOutageOfWhatIsShownIsNoErrorInTheLogAndARefusalIs(t *testing.T) {
	for _, optional := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			out := &logged{}
			fake, pods := unreliable(t, kates.WithLogger(slog.New(slog.NewTextHandler(out, nil))))
			s, err := kates.Watch[podsAndServices](t.Context(), fake.Client, kates.Query{Name: "Pods", Optional: optional})
			require.NoError(t, err)
			<-s.Changed()
			pods.cut(errBroken)
			<-time.After(time.Minute)
			assert.Zero(t, out.count("level=ERROR"), &out.text)
			assert.Equal(t, 1, out.count("level=INFO"), "it is said all the same: %s", &out.text)
			pods.set(errForbidden)
			<-time.After(time.Minute)
			errors := 1
			if optional {
				errors = 0
			}
			assert.Equal(t, errors, out.count("level=ERROR"), &out.text)
			s.Close()
		})
	}
}
