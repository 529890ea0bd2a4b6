package nginx

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bad returns a configuration with objects that nginx refuses: one that it finds by a certificate,
// and two by their lines.
func bad(t *testing.T, s *site) *Config {
	long := func(name string) Rule {
		rule := to("up")
		rule.Source = Object{Kind: "Ingress", Namespace: "shop", Name: name}
		rule.RequestHeaders.Set = []HeaderValue{{"X-Long", strings.Repeat("x", 5000)}}
		return rule
	}
	broken := certificate(t, "b.example.com")
	broken.Key = certificate(t, "b.example.com").Key
	secure := s.server("b.example.com", at(Prefix, "/", to("up")))
	secure.Port, secure.TLS, secure.Certificate = s.tls, true, "broken"
	c := s.config(secure, s.server("g.example.com", at(Exact, "/1", long("long-1")), at(Exact, "/2", long("long-2")), at(Prefix, "/", to("up"))))
	c.Certificates["broken"] = broken
	return c
}

var culprits = []string{
	"Secret shop/b.example.com", "Ingress shop/long-1", "Ingress shop/long-2",
}

func TestObjectsThatNginxRefusesAreAllNamedAndTheLastConfigurationServesOn(t *testing.T) {
	s := open(t, nil)
	good := s.config(s.server("g.example.com", at(Prefix, "/", to("up"))))
	s.apply(good)
	c := bad(t, s)
	out := s.apply(c)
	assert.False(t, out.Active)
	assert.False(t, out.Reloaded)
	var found []string
	for _, r := range out.Refused {
		found = append(found, r.Object.String())
		assert.NotEmpty(t, r.Message)
	}
	assert.ElementsMatch(t, culprits, found)
	assert.Equal(t, 200, s.get("http://g.example.com/").StatusCode)
	assert.Equal(t, 1, s.Stats().Refused)
	assert.Equal(t, out.Refused, s.apply(c).Refused)
	assert.Equal(t, 1, s.Stats().Refused, "it is not asked again")

	without := without(c, map[Object]bool{
		out.Refused[0].Object: true, out.Refused[1].Object: true, out.Refused[2].Object: true,
	})
	assert.True(t, s.apply(without).Active)
}

// Of one namespace a few are named, and the rest of it is held. Another one has its own.
func TestANamespaceOfManyObjectsAtFaultIsHeld(t *testing.T) {
	s := open(t, nil)
	var locations []Location
	for i := range 50 {
		for _, namespace := range []string{"attacker", "other", "victim"} {
			if namespace == "other" && i >= 2 || namespace == "victim" && i >= 1 {
				continue
			}
			rule := to("up")
			rule.Source = Object{Kind: "Ingress", Namespace: namespace, Name: fmt.Sprint("i-", i)}
			if namespace != "victim" {
				rule.RequestHeaders.Set = []HeaderValue{{"X-Long", strings.Repeat("x", 5000)}}
			}
			locations = append(locations, at(Exact, fmt.Sprintf("/%s/%d", namespace, i), rule))
		}
	}
	c := s.config(s.server("g.example.com", locations...))
	out := s.apply(c)
	of := map[string]int{}
	for _, r := range out.Refused {
		of[r.Object.Namespace]++
	}
	assert.Equal(t, map[string]int{"attacker": few + 1, "other": 2}, of)
	require.Len(t, out.Held, 1)
	assert.Equal(t, "attacker", out.Held[0].Namespace)
	assert.NotEmpty(t, out.Held[0].Message)
	assert.Equal(t, 1+few+1+2, s.Stats().Checks)
	assert.Equal(t, out, s.apply(c), "it is not asked again")
	assert.Equal(t, 1+few+1+2, s.Stats().Checks)

	refused, takesRest, err := s.Try(t.Context(), c)
	require.NoError(t, err)
	assert.Len(t, refused, few)
	assert.False(t, takesRest)
	leftOut := map[Object]bool{}
	for _, o := range sources(c) {
		leftOut[o] = o.Namespace == "attacker"
	}
	refused, takesRest, err = s.Try(t.Context(), without(c, leftOut))
	require.NoError(t, err)
	assert.Len(t, refused, 2)
	assert.True(t, takesRest)
	assert.False(t, s.Alive(), "nothing of that serves")
}

func TestAPathThatNginxRefusesIsTheFaultOfItsObjectsAlone(t *testing.T) {
	s := open(t, nil)
	other := to("up")
	other.Source = Object{Kind: "Ingress", Namespace: "shop", Name: "long"}
	path := "/" + strings.Repeat("a", 5000)
	for _, conditions := range [][]Condition{nil, {{Kind: Method, Value: "GET"}}} {
		other.Conditions = conditions
		for _, match := range []PathMatch{Exact, Prefix} {
			out := s.apply(s.config(s.server("g.example.com", at(match, path, other), at(Prefix, "/", to("up")))))
			require.Len(t, out.Refused, 1)
			assert.Equal(t, other.Source, out.Refused[0].Object)
			assert.Contains(t, out.Refused[0].Message, "too long parameter")
		}
	}
}

func TestHalvingFindsTheObjectWithoutALine(t *testing.T) {
	s := open(t, nil)
	c := bad(t, s)
	require.NoError(t, s.writeCertificates(c))
	out := map[Object]bool{}
	var found []string
	for range culprits {
		rest := without(c, out)
		message, err := s.check(t.Context(), Render(rest, s.render).Text)
		require.NoError(t, err)
		object, said, err := s.bisect(t.Context(), rest, message)
		require.NoError(t, err)
		assert.NotEmpty(t, said)
		out[object] = true
		found = append(found, object.String())
	}
	assert.ElementsMatch(t, culprits, found)
	message, err := s.check(t.Context(), Render(without(c, out), s.render).Text)
	require.NoError(t, err)
	assert.Empty(t, message)
}

func TestARefusalThatNoObjectExplainsIsAnError(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("g.example.com", at(Prefix, "/", to("up"))))
	s.render.ErrorLog = s.options.Dir + "/missing/error.log"
	_, err := s.Apply(t.Context(), clone(c))
	require.ErrorContains(t, err, "no object is at fault")
}

func TestAKilledNginxStartsWithTheLastConfigurationIfItRefusesTheNew(t *testing.T) {
	s := open(t, nil)
	s.apply(s.config(s.server("g.example.com", at(Prefix, "/", to("up")))))
	require.NoError(t, syscall.Kill(s.master(), syscall.SIGKILL))
	eventually(t, func() bool { return !s.Alive() })
	assert.Len(t, s.apply(bad(t, s)).Refused, len(culprits))
	assert.True(t, s.Alive())
	assert.Equal(t, 2, s.Stats().Starts)
	assert.Equal(t, 200, s.get("http://g.example.com/").StatusCode)
}

func TestAMissingNginxIsAnErrorThatSaysWhatToInstall(t *testing.T) {
	_, err := Open(Options{Dir: t.TempDir(), Binary: "/nowhere/nginx"})
	assert.ErrorContains(t, err, "apt-get install nginx")
	old := t.TempDir() + "/nginx"
	require.NoError(t, os.WriteFile(old, []byte("#!/bin/sh\necho nginx version: nginx/1.18.0 >&2\n"), 0o700))
	_, err = Open(Options{Dir: t.TempDir(), Binary: old})
	assert.ErrorContains(t, err, "needs 1.19.5 or newer")
	_, err = Open(Options{Dir: "/tmp/" + strings.Repeat("long", 30)})
	assert.ErrorContains(t, err, "too long for a socket")
}
