package probes

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ Health = (*fleet.Fleet)(nil)

type configMaps struct{ ConfigMaps []*corev1.ConfigMap }

func TestTheProbesOfAClientAreServedAtTheLoopbackAddress(t *testing.T) {
	client := katestest.NewClient(t)
	snapshots, err := kates.Watch[configMaps](t.Context(), client)
	require.NoError(t, err)
	<-snapshots.Changed()
	at, stop, err := Serve(":0", client)
	require.NoError(t, err)
	defer stop()
	assert.Contains(t, at, "127.0.0.1:")
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/healthz", "/readyz"} {
		answer, err := web.Get("http://" + at + path)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		require.NoError(t, err)
		assert.Equal(t, 200, answer.StatusCode)
		assert.Equal(t, "ok", string(text))
	}
}

func TestWithoutAnAddressNothingIsServed(t *testing.T) {
	at, stop, err := Serve("", nil)
	require.NoError(t, err)
	assert.Empty(t, at)
	stop()
	_, _, err = Serve("nowhere.invalid:x", nil)
	assert.ErrorContains(t, err, "-listen nowhere.invalid:x: ")
}
