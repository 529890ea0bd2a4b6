package nginx

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests attack: whoever may write one object in one namespace must harm no other.

// evil is the object of the attacker.
var evil = Object{Kind: "HTTPRoute", Namespace: "attacker", Name: "evil"}

// secure is a server over TLS, of a Gateway listener for the same host.
func (s *site) secure(host string) Server {
	server := s.server(host, at(Prefix, "/", to("up")))
	server.Port, server.TLS, server.Certificate, server.Listener = s.tls, true, "all", host
	return server
}

func TestNoHostIsAWordOfNginx(t *testing.T) {
	s := open(t, nil)
	words := []string{"default", "hostnames", "include", "volatile"}
	var servers []Server
	for _, host := range append(words, "victim.example.com", "*.wild.example.com") {
		servers = append(servers, s.secure(host))
	}
	for _, bad := range []string{"~.*", "~*x", "*", "_", "a..b", ".example.com", "www.example.*", "$hostname", `\default`, strings.Repeat("a.", 127) + "a"} {
		one := s.secure("free.example.com")
		one.Host = bad
		other := s.secure("free.example.com")
		other.Host, other.Listener = "listener.example.com", bad+"!"
		servers = append(servers, one, other)
	}
	c := s.config(servers...)
	c.Certificates["all"] = certificate(t, "*")
	out := s.apply(c)
	require.True(t, out.Active, "%v", out.Refused)
	s.answers([]asked{
		{"default", "default", 200}, {"include", "include", 200}, {"volatile", "volatile", 200}, {"hostnames", "hostnames", 200},
		{"default", "victim.example.com", 421}, {"include", "victim.example.com", 421}, {"victim.example.com", "default", 421},
		{"victim.example.com", "victim.example.com", 200}, {"x.y.wild.example.com", "z.wild.example.com", 200}, {"x.wild.example.com", "volatile", 421},
	})
	assert.NotContains(t, read(t, s.path("nginx.conf")), "free.example.com")
	assert.NotContains(t, read(t, s.path("nginx.conf")), "listener.example.com")
}

func TestEachLineOfAMapOfManyObjectsNamesItsOwn(t *testing.T) {
	s := &site{tls: 8443}
	victim, other := s.secure("victim.example.com"), s.secure("default")
	other.Source = evil
	r := Render(&Config{Servers: []Server{victim, other}}, RenderOptions{Dir: "/run/gateway", Lua: true})
	lines := strings.Split(string(r.Text), "\n")
	found := 0
	for i, line := range lines {
		for _, server := range []Server{victim, other} {
			if strings.Contains(line, `"`+server.Host+`"`) {
				source, ok := suspect(&Config{}, r, fmt.Sprintf("no in /run/gateway/candidate.conf:%d", i+1))
				assert.True(t, ok)
				assert.Equal(t, server.Source, source, line)
				found++
			}
		}
	}
	assert.Equal(t, 6, found)
}

func TestRulesOfManyObjectsShareNoLine(t *testing.T) {
	s := open(t, nil)
	rules := []Rule{to("victim", Condition{Kind: Method, Value: "PUT"}, Condition{Kind: Header, Name: "X-Attack", Value: "no"})}
	for i := range 600 {
		one := to(fmt.Sprint("evil-", i%3), Condition{Kind: Header, Name: "X-Attack", Value: fmt.Sprint(i)})
		one.Source = evil
		rules = append(rules, one)
	}
	r := Render(s.config(s.server("m.example.com", at(Prefix, "/", rules...))), s.render)
	message, err := s.check(t.Context(), r.Text)
	require.NoError(t, err)
	require.Empty(t, message)
	assert.Less(t, strings.Count(string(r.Text), "map "), 40, "each one costs nginx time")
	lines := strings.Split(string(r.Text), "\n")
	found := 0
	for i, line := range lines {
		assert.Less(t, len(line), 2100)
		if value, isOf := strings.CutPrefix(strings.TrimSpace(line), `"~^(?:`); isOf && lines[i-1] != "" {
			want := evil
			if strings.HasPrefix(value, "no)") || strings.HasPrefix(value, "PUT)") {
				want = rules[0].Source
				assert.NotContains(t, lines[i+1], "~", "a map has lines of one namespace")
			}
			source, ok := suspect(&Config{}, r, fmt.Sprintf("no in /run/gateway/candidate.conf:%d", i+1))
			assert.True(t, ok)
			assert.Equal(t, want, source, line)
			found++
		}
	}
	assert.Equal(t, 602, found)
	rules = rules[:71]
	out := s.apply(s.config(s.server("m.example.com", at(Prefix, "/", append(slices.Clip(rules), to("rest"))...), at(Prefix, "/none", rules...))))
	require.True(t, out.Active, "%v", out.Refused)
	for attack, want := range map[string]string{"0": "evil-0", "1": "evil-1", "31": "evil-1", "32": "evil-2", "64": "evil-1", "69": "evil-0", "70": "rest", "": "rest"} {
		assert.Equal(t, want, s.get("http://m.example.com/", "X-Attack", attack).Header.Get("X-Backend"), attack)
	}
	answer, err := s.ask(http.MethodPut, "http://m.example.com/none", "X-Attack", "no")
	require.NoError(t, err)
	assert.Equal(t, "victim", answer.Header.Get("X-Backend"))
	assert.Equal(t, 404, s.get("http://m.example.com/none", "X-Attack", "no").StatusCode)
}

func TestTheTextOfAnObjectInAMessageBlamesNobody(t *testing.T) {
	s := &site{tls: 8443}
	victim, other := s.secure("victim.example.com"), s.secure("other.example.com")
	other.Source = evil
	c := &Config{Servers: []Server{victim, other}, Certificates: map[string]Certificate{"all": {Source: Object{Kind: "Secret", Namespace: "victim"}}}}
	r := Render(c, RenderOptions{Dir: "/run/gateway", Lua: true})
	file := c.Certificates["all"].file()
	for _, span := range r.Spans {
		if span.Source == evil {
			message := fmt.Sprintf(`invalid "%s" in candidate.conf:%d" in /run/gateway/candidate.conf:%d`, file, r.Spans[0].First, span.First)
			source, ok := suspect(c, r, message)
			assert.True(t, ok)
			assert.Equal(t, evil, source)
		}
	}
	source, ok := suspect(c, r, `cannot load certificate "/run/gateway/`+file+`": PEM_read_bio_X509_AUX() failed`)
	assert.True(t, ok)
	assert.Equal(t, "victim", source.Namespace)
}

func TestALongHeaderNameIsLeftOut(t *testing.T) {
	s := open(t, nil)
	rule := to("up")
	rule.RequestHeaders.Set = []HeaderValue{{"X-" + strings.Repeat("n", 600), "1"}, {"X-" + strings.Repeat("m", 254), "2"}}
	out := s.apply(s.config(s.server("n.example.com", at(Prefix, "/", rule))))
	require.True(t, out.Active, "%v", out.Refused)
	assert.Equal(t, "2", s.get("http://n.example.com/").Header.Get("Got-X-"+strings.Repeat("m", 254)))
}

// takePort takes a port of the loopback interface until the test closes it.
func takePort(t *testing.T) (net.Listener, int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

func TestATakenPortIsTheFaultOfWhoAsksForItAlone(t *testing.T) {
	s := open(t, nil)
	l, port := takePort(t)
	attack := s.server("evil.example.com", at(Prefix, "/", to("up")))
	attack.Port = port
	nowhere := s.server("nowhere.example.com", at(Prefix, "/", to("up")))
	nowhere.Address = "192.0.2.1" // RFC 5737: no machine has it
	victim := s.server("victim.example.com", at(Prefix, "/", to("up")))
	want := []Taken{
		{"127.0.0.1", port, fmt.Sprintf("nginx cannot listen at 127.0.0.1:%d: address already in use", port)},
		{"192.0.2.1", s.plain, fmt.Sprintf("nginx cannot listen at 192.0.2.1:%d: cannot assign requested address", s.plain)},
	}

	// A fresh start: nginx says one address at a time, when it checks the configuration.
	var found []Taken
	servers := []Server{victim, attack, nowhere}
	for {
		out := s.apply(s.config(servers...))
		require.Empty(t, out.Refused)
		if out.Active {
			break
		}
		require.NotEmpty(t, out.Taken)
		found = append(found, out.Taken...)
		servers = leaveOut(servers, out.Taken)
	}
	require.Len(t, found, 2)
	assert.Equal(t, []string{"127.0.0.1", "192.0.2.1"}, []string{found[1].Address, found[0].Address})
	assert.Equal(t, 200, s.get("http://victim.example.com/").StatusCode)

	// One that runs: all of them, and nginx is not even asked.
	second := s.server("second.example.com", at(Prefix, "/", to("up")))
	c := s.config(victim, attack, nowhere, second)
	s.next = time.Time{} // a test need not wait between two reloads
	out := s.apply(c)
	assert.Equal(t, want, out.Taken)
	assert.False(t, out.Active || out.Reloaded)
	assert.Equal(t, 200, s.get("http://victim.example.com/").StatusCode)
	assert.Zero(t, s.Stats().Refused)
	c.Servers = leaveOut(c.Servers, out.Taken)
	s.next = time.Time{}
	assert.True(t, s.apply(c).Active)
	eventually(t, func() bool { return s.get("http://second.example.com/").StatusCode == 200 })

	require.NoError(t, l.Close())
	s.next = time.Time{}
	assert.True(t, s.apply(s.config(victim, second, attack)).Active, "it is free")
}

// leaveOut is what the caller of Apply does.
func leaveOut(servers []Server, taken []Taken) (all []Server) {
	for _, s := range servers {
		out := false
		for _, one := range taken {
			out = out || one.Address == s.Address && one.Port == s.Port
		}
		if !out {
			all = append(all, s)
		}
	}
	return all
}

func TestAPortThatIsTakenAtAllAddresses(t *testing.T) {
	s := open(t, nil)
	l, err := net.Listen("tcp", ":0") // of IPv4 and IPv6
	require.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	everywhere := s.server("evil.example.com", at(Prefix, "/", to("up")))
	everywhere.Address, everywhere.Port = "", port
	s.apply(s.config(s.server("victim.example.com", at(Prefix, "/", to("up")))))
	s.next = time.Time{}
	out := s.apply(s.config(everywhere))
	require.Len(t, out.Taken, 1, "one server asks for both")
	assert.Equal(t, port, out.Taken[0].Port)
	assert.Empty(t, out.Taken[0].Address)
}

func TestWhereNginxListensIsReadFromItsConfiguration(t *testing.T) {
	text := "listen 8080;\n    listen 10.0.0.1:8080 ssl;\n    listen [::1]:9090 default_server;\n    listen 10.0.0.2:81;\n" +
		"    listen \"unix:/x\";\n    listen [::]:8080;\n    listen [fd00::1]:8080;\n" +
		"listen [::]:7070;\nlisten [fd00::2]:7070;\nlisten 10.0.0.3:7070;\nlisten 6060;\nlisten [fd00::3]:6060;\n    set $x \" listen 1;\";\n"
	assert.Equal(t, "[0.0.0.0:6060 0.0.0.0:8080 10.0.0.2:81 10.0.0.3:7070 [::]:7070 [::]:8080 [::1]:9090 [fd00::3]:6060]", fmt.Sprint(listened([]byte(text))))
	for message, want := range map[string]string{
		"bind() to 192.0.2.1:80 failed (99: Cannot assign requested address)":       "192.0.2.1 80",
		"bind() to 0.0.0.0:80 failed (13: Permission denied)":                       " 80",
		"socket() [::1]:80 failed (97: Address family not supported by protocol)":   "::1 80",
		`unknown "bind() to 192.0.2.1:80 failed (99: x)" in /run/candidate.conf:33`: "",
		"no bind() to 192.0.2.1:80 failed (99: x)":                                  "",
		"bind() to unix:/x failed (98: Address already in use)":                     "",
	} {
		taken, ok := refusedAddress(message)
		assert.Equal(t, want != "", ok, message)
		if ok {
			assert.Equal(t, want, fmt.Sprint(taken.Address, " ", taken.Port))
		}
	}
}

// raw sends a request as it is.
func (s *site) raw(request string) *http.Response {
	s.t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.plain))
	require.NoError(s.t, err)
	defer conn.Close()
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	fmt.Fprint(conn, strings.ReplaceAll(request, "\n", "\r\n")+"\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.t, err)
	answer.Body.Close()
	return answer
}

func TestAnEndpointIsToldTheHostThatChoseTheRoute(t *testing.T) {
	s := open(t, nil)
	changed := to("changed")
	changed.RequestHeaders.Set = []HeaderValue{{"X-Other", "1"}}
	s.apply(s.config(s.server("shop.test", at(Prefix, "/", to("victim")), at(Prefix, "/changed", changed)), s.server("evil.test", at(Prefix, "/", to("evil"))),
		s.server("", at(Prefix, "/", to("rest")))))
	for request, want := range map[string]string{
		"GET /x HTTP/1.1\nHost: shop.test":                                "victim shop.test",
		"GET /x HTTP/1.1\nHost: SHOP.test:8080":                           "victim shop.test:8080",
		"GET /x HTTP/1.1\nHost: shop.test.":                               "victim shop.test",
		"GET http://shop.test/x HTTP/1.1\nHost: evil.test":                "victim shop.test",
		"GET http://shop.test/changed HTTP/1.1\nHost: evil.test":          "changed shop.test",
		"GET http://shop.test:81/x HTTP/1.1\nHost: evil.test:82":          "victim shop.test",
		"GET http://shop.test/x HTTP/1.1\nHost: shop.test:83":             "victim shop.test:83",
		"GET http://shop.test/x HTTP/1.1\nHost: shop.test.evil.test":      "victim shop.test",
		"GET http://shop.test/x HTTP/1.1\nHost: shop-test:80":             "victim shop.test",
		"GET http://unknown.test/x HTTP/1.1\nHost: shop.test":             "rest unknown.test",
		"GET /x HTTP/1.1\nHost: shop.test\nX-Forwarded-Host: evil.test":   "victim shop.test",
		"GET /x HTTP/1.1\nHost: [::1]:80\nX_Forwarded_Host: evil.test":    "rest [::1]:80",
		"POST /x HTTP/1.1\nHost: shop.test\nContent-Length: 0\nTE: gzip,": "victim shop.test",
	} {
		answer := s.raw(request + "\nConnection: close")
		assert.Equal(t, want, answer.Header.Get("X-Backend")+" "+answer.Header.Get("X-Host"), request)
		assert.Equal(t, answer.Header.Get("X-Host"), answer.Header.Get("Got-X-Forwarded-Host"), request)
	}
	for _, request := range []string{
		"GET /x HTTP/1.1\nHost: shop.test\nHost: evil.test",
		"POST /x HTTP/1.1\nHost: shop.test\nContent-Length: 4\nTransfer-Encoding: chunked",
	} {
		assert.Equal(t, 400, s.raw(request+"\nConnection: close").StatusCode, request)
	}
}

func TestNothingButWebSocketIsUpgraded(t *testing.T) {
	s := open(t, nil)
	changed := to("changed")
	changed.RequestHeaders.Set = []HeaderValue{{"X-Other", "1"}, {"Upgrade", "h2c"}}
	s.apply(s.config(s.server("u.example.com", at(Prefix, "/", to("up")), at(Prefix, "/changed", changed))))
	for upgrade, want := range map[string]string{
		"h2c": "", "h2c, websocket": "", "websocket, h2c": "", "TLS/1.2": "", "websocketx": "", "": "", "WebSocket": "websocket", "websocket": "websocket",
	} {
		for _, path := range []string{"/", "/changed"} {
			answer := s.raw("GET " + path + " HTTP/1.1\nHost: u.example.com\nConnection: Upgrade, HTTP2-Settings\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\nUpgrade: " + upgrade)
			assert.Equal(t, 200, answer.StatusCode)
			assert.Equal(t, want, answer.Header.Get("Got-Upgrade"), upgrade)
			assert.Equal(t, want != "", answer.Header.Get("Got-Connection") == "upgrade", upgrade)
		}
	}
}

// An endpoint that is nginx itself is refused by package translate. A circle may go further.
func TestARequestThatGoesRoundInACircleIsRefused(t *testing.T) {
	s := open(t, nil)
	loop := to("loop")
	loop.RequestHeaders = HeaderChanges{Remove: []string{LoopHeader}, Set: []HeaderValue{{"cdn-loop", "x"}, {"X-Other", "1"}}, Add: []HeaderValue{{"CDN-Loop", "x"}}}
	c := s.config(s.server("loop.example.com", at(Prefix, "/", loop)), s.server("other.example.com", at(Prefix, "/", to("up"))))
	c.Settings.AccessLog = true
	c.Upstreams["loop"] = []string{fmt.Sprintf("127.0.0.1:%d", s.plain)}
	s.apply(c)
	assert.Equal(t, http.StatusLoopDetected, s.get("http://loop.example.com/").StatusCode)
	eventually(t, func() bool { return strings.Count(read(t, s.path("access.log")), "\n") == mostRounds+1 })
	got := s.get("http://other.example.com/", LoopHeader, "cdn.example.net, kates-gateway, kates-gateway")
	assert.Equal(t, "cdn.example.net, kates-gateway, kates-gateway, kates-gateway", got.Header.Get("Got-Cdn-Loop"), "two proxies behind it may come back")
	assert.Equal(t, "kates-gateway", s.get("http://other.example.com/").Header.Get("Got-Cdn-Loop"))
}

// FuzzNginxTakesEachTextOrItsObjectIsBlamed: nginx takes the configuration, or says of a line that
// it is of the object with the text, and takes the rest.
func FuzzNginxTakesEachTextOrItsObjectIsBlamed(f *testing.F) {
	for i := 0; i < len(hostile); i += 12 { // each one takes nginx a moment
		f.Add(hostile[i], hostile[(i+5)%len(hostile)], hostile[(i+2)%len(hostile)], patterns[i%len(patterns)])
	}
	f.Add("default", "include", "hostnames", "volatile")
	f.Add(strings.Repeat("x", 5000), "x", strings.Repeat("n", 600), strings.Repeat("(x)", 80))
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(f, err)
	n, err := Open(Options{Dir: dir})
	require.NoError(f, err)
	f.Cleanup(func() {
		assert.NoError(f, errors.Join(n.Close(context.Background()), os.RemoveAll(dir)))
	})
	good := certificate(f, "h.example.com")
	f.Fuzz(func(t *testing.T, text, host, header, pattern string) {
		c := every(text, host, header, pattern)
		for i := range c.Servers {
			c.Servers[i].Address, c.Servers[i].Port = "127.0.0.1", 10000+i // never listened at: it is only checked
		}
		c.Certificates = map[string]Certificate{"c" + text: good}
		require.NoError(t, n.writeCertificates(c))
		r := Render(c, n.render)
		message, err := n.check(t.Context(), r.Text)
		require.NoError(t, err)
		if message == "" {
			return
		}
		culprit, ok := suspect(c, r, message)
		require.True(t, ok, "%s\n%s", message, r.Text)
		assert.Equal(t, c.Servers[0].Source, culprit, message)
		message, err = n.check(t.Context(), Render(without(c, map[Object]bool{culprit: true}), n.render).Text)
		require.NoError(t, err)
		assert.Empty(t, message)
	})
}
