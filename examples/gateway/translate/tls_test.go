package translate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func withSecrets(t require.TestingT, o Options, secrets ...*corev1.Secret) *translation {
	snap := snapshotOf(t)
	for _, s := range secrets {
		snap.Secrets[name(s)] = s
	}
	return newTranslation(snap, o)
}

func TestACertificateIsNamedByItsContent(t *testing.T) {
	chain, key := newAuthority(t).issue(t, "shop.example.com")
	tr := withSecrets(t, Options{}, secret("z", chain, key), secret("a", append([]byte("# a comment\n"), chain...), key))
	id, err := tr.certificate("prod", "z")
	require.NoError(t, err)
	assert.Regexp(t, "^[0-9a-f]{16}$", id)
	same, err := tr.certificate("prod", "a")
	require.NoError(t, err)
	assert.Equal(t, id, same)
	assert.Equal(t, chain, tr.config.Certificates[id].Chain)
	assert.Equal(t, key, tr.config.Certificates[id].Key)
	assert.Equal(t, "a", tr.config.Certificates[id].Source.Name, "one of the two, whatever their order")
}

func TestABrokenSecretSaysWhatIsWrongAndNothingOfItsContent(t *testing.T) {
	ca := newAuthority(t)
	chain, key := ca.issue(t, "shop.example.com")
	_, other := ca.issue(t, "shop.example.com")
	const mark = "KEEPTHISOUT"
	odd := pem.EncodeToMemory(&pem.Block{Type: mark, Bytes: []byte(mark)})
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(mark)})
	for _, test := range []struct {
		name       string
		chain, key []byte
		want       string
	}{
		{"no certificate", nil, key, "the Secret prod/s cannot be used: it has no tls.crt"},
		{"no key", chain, nil, "the Secret prod/s cannot be used: it has no tls.key"},
		{"no PEM", []byte(mark), key, "the Secret prod/s cannot be used: its tls.crt has no certificate"},
		{"a key for a certificate", key, key, "the Secret prod/s cannot be used: its tls.crt has no certificate"},
		{"a broken certificate", broken, key, "the Secret prod/s cannot be used: a certificate in its tls.crt cannot be read"},
		{"a broken one in the chain", append(chain[:len(chain):len(chain)], broken...), key, "the Secret prod/s cannot be used: a certificate in its tls.crt cannot be read"},
		{"another key", chain, other, "the Secret prod/s cannot be used: its tls.key is not the private key of the certificate in its tls.crt"},
		{"no key in PEM", chain, odd, "the Secret prod/s cannot be used: its tls.key is not the private key of the certificate in its tls.crt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := withSecrets(t, Options{}, secret("s", test.chain, test.key))
			id, err := tr.certificate("prod", "s")
			require.EqualError(t, err, test.want)
			assert.NotContains(t, err.Error(), mark)
			assert.Empty(t, id)
			assert.Empty(t, tr.config.Certificates)
			reports := tr.sorted()
			require.Len(t, reports, 1, "on the Secret itself")
			assert.Equal(t, []Problem{{"InvalidCertificate", strings.TrimPrefix(test.want, "the Secret prod/s cannot be used: ")}}, reports[0].Problems)
		})
	}
	_, err := withSecrets(t, Options{}).certificate("prod", "none")
	assert.EqualError(t, err, "there is no Secret prod/none")
}

func TestAKeyOfAnOlderFormIsServed(t *testing.T) {
	ca := newAuthority(t)
	private, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, ca.cert, ca.cert, private.Public(), ca.key)
	require.NoError(t, err)
	old, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 5, 43, 129, 4, 0, 34}})
	s := secret("s", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		append(parameters, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: old})...))
	tr := withSecrets(t, Options{}, s)
	id, err := tr.certificate("prod", "s")
	require.NoError(t, err)
	assert.Equal(t, keyPEM(t, private), tr.config.Certificates[id].Key)
}

func TestACertificateThatClientsWillNotTakeIsADoubt(t *testing.T) {
	chain, key := newAuthority(t).issue(t, "shop.example.com", "*.example.org")
	for _, test := range []struct {
		name, host string
		now        time.Time
		want       []string
	}{
		{"none", "shop.example.com", born.AddDate(0, 1, 0), nil},
		{"no clock", "shop.example.com", time.Time{}, nil},
		{"any host", "", born.AddDate(0, 1, 0), nil},
		{"a wildcard", "*.example.org", born.AddDate(0, 1, 0), nil},
		{"a host of the wildcard", "a.example.org", born.AddDate(0, 1, 0), nil},
		{"another host", "blog.example.com", born.AddDate(0, 1, 0), []string{`the certificate is not for the host "blog.example.com"`}},
		{"expired", "shop.example.com", born.AddDate(2, 0, 0), []string{"the certificate has expired at 2027-01-01T00:00:00Z"}},
		{"early", "shop.example.com", born.AddDate(-1, 0, 0), []string{"the certificate is not valid before 2026-01-01T00:00:00Z"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := withSecrets(t, Options{Now: test.now}, secret("s", chain, key))
			id, err := tr.certificate("prod", "s")
			require.NoError(t, err, "it is served all the same")
			assert.Equal(t, test.want, tr.doubts(id, test.host))
		})
	}
}

func TestASecretThatNginxRefusesIsServedAsItLastWas(t *testing.T) {
	ca := newAuthority(t)
	chain, key := ca.issue(t, "shop.example.com")
	good := secret("s", chain, key)
	bad := secret("s", key, chain)
	bad.ResourceVersion = "8"
	refused := func(version string, last *corev1.Secret) Options {
		refusal := Refusal{Version: version, Message: "ee key too small"}
		if last != nil {
			refusal.LastGood = last
		}
		return Options{Refused: map[types.UID]Refusal{bad.UID: refusal}}
	}
	tr := withSecrets(t, refused("8", good), bad)
	id, err := tr.certificate("prod", "s")
	require.NoError(t, err)
	assert.Equal(t, chain, tr.config.Certificates[id].Chain)
	assert.Equal(t, []Problem{{"Refused", "nginx refuses it, and its last good version is served: ee key too small"}}, tr.report(bad).Problems)

	tr = withSecrets(t, refused("8", nil), bad)
	_, err = tr.certificate("prod", "s")
	assert.EqualError(t, err, "the Secret prod/s is not served: nginx refuses it: ee key too small")
	assert.Equal(t, []Problem{{"Refused", "nginx refuses it, and nothing of it is served: ee key too small"}}, tr.report(bad).Problems)

	tr = withSecrets(t, refused("6", nil), good)
	_, err = tr.certificate("prod", "s")
	assert.NoError(t, err, "a refusal is of one version")
}

func TestASecretIsParsedOnceAndForgottenWithIt(t *testing.T) {
	chain, key := newAuthority(t).issue(t, "shop.example.com")
	at := func() weak.Pointer[corev1.Secret] {
		s := secret("s", chain, key)
		first, err := keyPairOf(s)
		require.NoError(t, err)
		second, err := keyPairOf(s)
		require.NoError(t, err)
		assert.Same(t, first, second)
		return weak.Make(s)
	}()
	assert.Eventually(t, func() bool {
		runtime.GC()
		_, known := parsed.Load(at)
		return !known
	}, time.Minute, time.Millisecond)
}
