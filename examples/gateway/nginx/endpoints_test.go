package nginx

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEndpointsChangeWithoutAReload(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("e.example.com", at(Prefix, "/", to("up"))))
	require.True(t, s.apply(c).Reloaded)
	workers := s.workers()
	for i := range 20 {
		name := fmt.Sprint("endpoint-", i)
		c.Upstreams["up"] = []string{backend(t, name)}
		out := s.apply(c)
		assert.True(t, out.Active)
		assert.False(t, out.Reloaded)
		assert.Equal(t, 1, out.Pushed)
		assert.Equal(t, name, s.get("http://e.example.com/").Header.Get("X-Backend"), "the next request")
	}
	assert.Zero(t, s.apply(c).Pushed, "nothing has changed")
	assert.Equal(t, workers, s.workers())
	c.Upstreams["up"] = nil
	s.apply(c)
	assert.Equal(t, 503, s.get("http://e.example.com/").StatusCode)
	assert.Equal(t, Stats{Hash: s.Stats().Hash, Starts: 1, Checks: 1, Pushed: 21, LastReload: s.Stats().LastReload, LastDuration: s.Stats().LastDuration}, s.Stats())
}

func TestWithoutLuaEndpointsChangeByAReload(t *testing.T) {
	s := open(t, func(o *Options) { o.Modules = "/nowhere" })
	require.False(t, s.lua)
	c := s.config(s.server("e.example.com", at(Prefix, "/", to("up")), at(Exact, "/empty", to("empty"))))
	c.Upstreams["empty"] = []string{"not an address; }"}
	s.apply(c)
	assert.Equal(t, "up", s.get("http://e.example.com/").Header.Get("X-Backend"))
	assert.Equal(t, 503, s.get("http://e.example.com/empty").StatusCode)
	c.Upstreams["up"] = []string{backend(t, "another")}
	assert.True(t, s.apply(c).Reloaded)
	eventually(t, func() bool { return s.get("http://e.example.com/").Header.Get("X-Backend") == "another" })
}

func TestAllEndpointsGetRequestsAndADeadOneFailsNone(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("e.example.com", at(Prefix, "/", to("up"))))
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c.Upstreams["up"] = []string{backend(t, "a"), dead.Addr().String(), backend(t, "b")}
	require.NoError(t, dead.Close())
	s.apply(c)
	seen := map[string]int{}
	for range 40 {
		answer := s.get("http://e.example.com/")
		require.Equal(t, 200, answer.StatusCode)
		seen[answer.Header.Get("X-Backend")]++
	}
	assert.Len(t, seen, 2)
}

func TestUpstreamsWithOddNamesAndIPv6(t *testing.T) {
	s := open(t, nil)
	const odd = "-a b\"\n$x/é:80"
	c := s.config(s.server("e.example.com", at(Prefix, "/", to(odd))))
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		l.Close()
		c.Upstreams[odd] = append(c.Upstreams[odd], l.Addr().String()) // nobody is there: another try
	}
	s.apply(c)
	for range 4 {
		assert.Equal(t, 200, s.get("http://e.example.com/").StatusCode)
	}
}

func TestBackendsGetTheirShares(t *testing.T) {
	s := open(t, nil)
	rule := Rule{Backends: []Backend{{Upstream: "many", Weight: 9}, {Upstream: "none", Weight: 0}, {Upstream: "few", Weight: 1}, {Upstream: "never", Weight: -1}}}
	s.apply(s.config(s.server("w.example.com", at(Prefix, "/", rule))))
	seen := map[string]int{}
	for seen["few"] == 0 || seen["many"] == 0 {
		seen[s.get("http://w.example.com/").Header.Get("X-Backend")]++
	}
	assert.Len(t, seen, 2)
	assert.Contains(t, read(t, s.path("nginx.conf")), "90.00% \"@r")
}

func TestAKilledMasterIsStartedAgainWithAllEndpoints(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("e.example.com", at(Prefix, "/", to("up")), at(Prefix, "/other", to("other"))))
	s.apply(c)
	c.Upstreams["up"] = []string{backend(t, "changed")}
	s.apply(c)
	require.NoError(t, syscall.Kill(s.master(), syscall.SIGKILL))
	eventually(t, func() bool { return !s.Alive() })
	out := s.apply(c)
	assert.True(t, out.Reloaded)
	assert.True(t, s.Alive())
	assert.Equal(t, "changed", s.get("http://e.example.com/").Header.Get("X-Backend"))
	assert.Equal(t, "other", s.get("http://e.example.com/other").Header.Get("X-Backend"))
	assert.Equal(t, 2, s.apply(c).Pushed, "another master: all of them")
	assert.Zero(t, s.apply(c).Pushed)
}

func TestTheNextGatewayAdoptsNginx(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("e.example.com", at(Prefix, "/", to("up"))))
	s.apply(c)
	master, workers := s.master(), s.workers()
	_, err := Open(s.options)
	require.ErrorContains(t, err, "another gateway has the folder")
	require.NoError(t, s.lock.Close()) // as when the gateway is killed
	assert.Equal(t, 200, s.get("http://e.example.com/").StatusCode, "without a gateway")

	s.reopen(s.options.Dir, nil)
	out := s.apply(c)
	assert.Equal(t, Outcome{Hash: out.Hash, Active: true, Pushed: 1}, out)
	assert.Equal(t, master, s.master())
	assert.Equal(t, workers, s.workers())
}

func TestAnotherContainerMayStartNginx(t *testing.T) {
	s := open(t, func(o *Options) { o.External = true })
	c := s.config(s.server("e.example.com", at(Prefix, "/", to("up"))))
	started := make(chan error, 1)
	other := &Nginx{options: s.options, log: s.log, found: s.found, render: s.render, control: s.control}
	go func() { // the other container: ends once nginx has started
		path := filepath.Join(s.options.Dir, "nginx.conf")
		for !exists(path) && t.Context().Err() == nil {
			pause(t, 1)
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = other.start(context.Background(), hashOf(text))
		}
		started <- err
	}()
	assert.True(t, s.apply(c).Active)
	require.NoError(t, <-started)
	assert.Equal(t, 200, s.get("http://e.example.com/").StatusCode)
	c.Servers[0].Host = "f.example.com"
	assert.True(t, s.apply(c).Reloaded)
	eventually(t, func() bool { return s.get("http://f.example.com/").StatusCode == 200 })
	require.NoError(t, s.Close(context.Background()))
	assert.True(t, other.Alive())
	require.NoError(t, other.quit(context.Background(), patience))
}

func TestAMasterThatSomebodyElseHasStartedAgainGetsAllEndpoints(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("e.example.com", at(Prefix, "/", to("up")), at(Prefix, "/other", to("other"))))
	s.apply(c)
	old := read(t, s.path("endpoints"))
	c.Upstreams["up"] = []string{backend(t, "changed")}
	s.apply(c)
	require.NoError(t, s.quit(context.Background(), patience))
	require.NoError(t, os.WriteFile(s.path("endpoints"), []byte(old), 0o600))
	require.NoError(t, s.start(t.Context(), s.Stats().Hash)) // as another container does
	assert.Equal(t, "up", s.get("http://e.example.com/").Header.Get("X-Backend"), "it begins with the file")

	c.Upstreams["other"] = []string{backend(t, "changed, too")}
	out := s.apply(c)
	assert.False(t, out.Reloaded)
	assert.Equal(t, 3, out.Pushed, "the one that has changed, and all")
	assert.Equal(t, "changed", s.get("http://e.example.com/").Header.Get("X-Backend"))
	assert.Equal(t, "changed, too", s.get("http://e.example.com/other").Header.Get("X-Backend"))
}

func TestNginxIsInASessionOfItsOwn(t *testing.T) {
	s := open(t, nil)
	s.apply(s.config(s.server("e.example.com", at(Prefix, "/", to("up")))))
	group, err := syscall.Getpgid(s.master())
	require.NoError(t, err)
	assert.Equal(t, s.master(), group, "what ends the gateway's group does not end nginx")
}

func TestUpstreamsThatAreGoneAreRemovedAfterTheWorkersThatMayAskForThem(t *testing.T) {
	begin := time.Now()
	p := pushed{lines: map[string]string{}, retired: map[string]time.Time{}}
	both := map[string]string{"a": "a 10.0.0.1:80", "b": "b "}
	assert.Equal(t, []string{"a 10.0.0.1:80", "b "}, p.changes(both, begin, time.Minute))
	p.sent([]string{"a 10.0.0.1:80", "b "})
	assert.Empty(t, p.changes(both, begin, time.Minute))
	one := map[string]string{"a": both["a"]}
	assert.Empty(t, p.changes(one, begin, time.Minute))
	assert.Empty(t, p.changes(one, begin.Add(2*time.Minute), time.Minute))
	gone := p.changes(one, begin.Add(3*time.Minute), time.Minute)
	assert.Equal(t, []string{"-b"}, gone)
	p.sent(gone)
	assert.Empty(t, p.changes(one, begin.Add(3*time.Minute), time.Minute))
	assert.Equal(t, []string{"b "}, p.changes(both, begin.Add(4*time.Minute), time.Minute), "it comes back")
}

func TestPushedEndpointsAreNewerThanThoseOfAConfiguration(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("e.example.com", at(Prefix, "/", to("up"))))
	answers := func() string { return s.get("http://e.example.com/").Header.Get("X-Backend") }
	push := func(name string) int {
		n, err := s.Push(t.Context(), map[string][]string{"up": {backend(t, name)}})
		require.NoError(t, err)
		return n
	}
	assert.Zero(t, push("first"), "nginx does not run yet")
	s.apply(c)
	assert.Equal(t, "first", answers(), "it starts with them")
	assert.Equal(t, 1, push("second"))
	assert.Equal(t, "second", answers())
	c.Servers = append(c.Servers, s.server("f.example.com", at(Prefix, "/", to("other"))))
	c.Upstreams["other"] = []string{backend(t, "other")}
	require.True(t, s.apply(c).Reloaded)
	assert.Equal(t, "second", answers(), "the configuration is of an older snapshot")
	eventually(t, func() bool { return s.get("http://f.example.com/").Header.Get("X-Backend") == "other" })
	n, err := s.Push(t.Context(), map[string][]string{"other": {backend(t, "new")}})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, "second", answers(), "what is not named stays")
	eventually(t, func() bool { return s.get("http://f.example.com/").Header.Get("X-Backend") == "new" })
}
