package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

func TestVariantsAreFoundByName(t *testing.T) {
	some, err := Select("cr, kates")
	require.NoError(t, err)
	assert.Equal(t, []string{"kates", "cr"}, []string{some[0].Name, some[1].Name})
	all, err := Select("")
	require.NoError(t, err)
	assert.Len(t, all, len(Variants))
	_, err = Select("kates other")
	require.ErrorContains(t, err, `there is no gateway "other", but: kates, cr`)
}

func TestTheLinesOfEachGatewayAreKnown(t *testing.T) {
	for _, v := range Variants {
		assert.Greater(t, v.Lines(), 200, v.Name)
	}
}

// fake is an nginx that does as it is told.
type fake struct {
	out nginx.Outcome
	err error
}

func (f *fake) Apply(context.Context, *nginx.Config) (nginx.Outcome, error) { return f.out, f.err }
func (f *fake) Push(context.Context, map[string][]string) (int, error)      { return 0, f.err }
func (*fake) Try(context.Context, *nginx.Config) ([]nginx.Refusal, bool, error) {
	return nil, true, nil
}

func (*fake) Pushes() bool       { return true }
func (*fake) Alive() bool        { return true }
func (*fake) Stats() nginx.Stats { return nginx.Stats{} }

// configOf has an upstream and a server with these marks.
func configOf(endpoint, path string) *nginx.Config {
	return &nginx.Config{
		Upstreams: map[string][]string{"a.b.80": {"10.0.0.1:80", endpoint}},
		Servers:   []nginx.Server{{Host: "a.example.com", Locations: []nginx.Location{{Path: "/"}, {Path: path}}}},
	}
}

func TestAChangeIsSeenWhenNginxHasIt(t *testing.T) {
	engine := &fake{}
	w := newWeb(engine, "127.200.0.1")
	apply := func(out nginx.Outcome, err error, c *nginx.Config) []Seen {
		engine.out, engine.err = out, err
		_, _ = w.Apply(t.Context(), c)
		assert.Equal(t, "127.200.0.1", c.Servers[0].Address)
		seen := w.Take()
		for i := range seen {
			assert.Positive(t, seen[i].UnixNano)
			seen[i].UnixNano = 0
		}
		return seen
	}
	push := func(err error, endpoint string) []Seen {
		engine.err = err
		_, _ = w.Push(t.Context(), configOf(endpoint, "").Upstreams)
		seen := w.Take()
		for i := range seen {
			seen[i].UnixNano = 0
		}
		return seen
	}
	_, err := w.Fingerprint()
	require.Error(t, err)
	assert.Empty(t, push(nil, "10.200.0.1:80"), "nginx does not run yet")
	assert.Empty(t, apply(nginx.Outcome{Again: 1}, nil, configOf("10.0.0.2:80", "/v1")))
	assert.Empty(t, apply(nginx.Outcome{Active: true}, nil, configOf("10.0.0.2:80", "/v0")), "this is no mark")
	select {
	case <-w.active:
	default:
		assert.Fail(t, "a configuration is active")
	}
	first, err := w.Fingerprint()
	require.NoError(t, err)
	assert.Empty(t, apply(nginx.Outcome{}, errors.New("broken"), configOf("10.0.0.2:80", "/v2")))
	assert.Empty(t, apply(nginx.Outcome{Refused: []nginx.Refusal{{}}}, nil, configOf("10.0.0.2:80", "/v2")))
	assert.Empty(t, apply(nginx.Outcome{Again: 1}, nil, configOf("10.0.0.2:80", "/v2")), "paths wait for a reload")
	assert.Equal(t, []Seen{{Ingress: true, Key: "a.example.com", Mark: 2}}, apply(nginx.Outcome{Active: true}, nil, configOf("10.0.0.2:80", "/v2")))
	assert.Empty(t, apply(nginx.Outcome{Active: true}, nil, configOf("10.0.0.2:80", "/v2")), "each is seen once")
	assert.Empty(t, push(errors.New("broken"), "10.200.0.1:80"))
	assert.Equal(t, []Seen{{Key: "a.b.80", Mark: 1}}, push(nil, "10.200.0.1:80"))
	assert.Empty(t, push(nil, "10.200.0.1:80"))
	applied, pushes := w.Counts()
	assert.Equal(t, []int{5, 3}, []int{applied, pushes})
	second, err := w.Fingerprint()
	require.NoError(t, err)
	assert.NotEqual(t, first, second)
}

func TestWhatIsServedIsTheSameWhateverTheObjectsAreCalled(t *testing.T) {
	prints := map[string]bool{}
	for _, version := range []string{"1", "2"} {
		c := configOf("10.0.0.2:80", "/v1")
		c.Servers[0].Locations[0].Rules = []nginx.Rule{{Source: nginx.Object{Name: "n", Version: version}, Backends: []nginx.Backend{{Upstream: "a.b.80", Weight: 1}}}}
		w := newWeb(&fake{out: nginx.Outcome{Active: true}}, "127.200.0."+version)
		_, err := w.Apply(t.Context(), c)
		require.NoError(t, err)
		print, err := w.Fingerprint()
		require.NoError(t, err)
		prints[print] = true
	}
	assert.Len(t, prints, 1)
}

func TestTheTimeOfNginxIsThatOfItsMasterAndItsWorkers(t *testing.T) {
	stat := func(parent string) []byte {
		return []byte("42 (nginx: a (b) c) S " + parent + " 1 1 0 -1 0 0 0 0 0 100 50 200 25 20 0 1 0")
	}
	assert.InDelta(t, 3.75, secondsOf(stat("1"), true, "42"), 1e-9)
	assert.InDelta(t, 1.5, secondsOf(stat("7"), false, "7"), 1e-9)
	assert.Zero(t, secondsOf(stat("1"), false, "7"))
	assert.Zero(t, secondsOf([]byte("42 (short) S 7"), false, "7"))
}

func TestCommandsOutOfPlaceAreErrors(t *testing.T) {
	var in, out bytes.Buffer
	for _, c := range []Command{{Do: Count}, {Do: EndProfile}, {Do: "dance"}} {
		require.NoError(t, json.NewEncoder(&in).Encode(c))
	}
	require.NoError(t, Serve(t.Context(), Variants[0], &rest.Config{}, &in, &out))
	for d := json.NewDecoder(&out); d.More(); {
		var a Answer
		require.NoError(t, d.Decode(&a))
		assert.Contains(t, a.Error, "it has not been started")
	}
}
