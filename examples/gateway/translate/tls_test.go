package translate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// withSecrets translates Secrets, and an Ingress for each that has it for a host.
func withSecrets(t require.TestingT, o Options, host string, secrets ...*corev1.Secret) *Desired {
	snap := snapshotOf(t, ourClass)
	for _, s := range secrets {
		snap.Secrets = append(snap.Secrets, s)
		snap.Ingresses = append(snap.Ingresses, naming(t, s.Name, host))
	}
	return Translate(snap, o)
}

// naming is an Ingress of the name of a Secret, which it has for a host.
func naming(t require.TestingT, secret, host string) *networkingv1.Ingress {
	return snapshotOf(t, ingressOf(secret, "tls: [{secretName: "+secret+"}]\nrules:\n"+rule(host, to("/", "Prefix", "web")))).Ingresses[0]
}

const shopHost = "shop.example.com"

// theCertificate is the only one.
func theCertificate(t require.TestingT, d *Desired) (id string, c nginx.Certificate) {
	require.Len(t, d.Config.Certificates, 1)
	for id, c = range d.Config.Certificates {
	}
	return id, c
}

func TestACertificateIsNamedByItsContent(t *testing.T) {
	chain, key := newAuthority(t).issue(t, "shop.example.com")
	d := withSecrets(t, Options{}, shopHost, secret("z", chain, key), secret("a", append([]byte("# a comment\n"), chain...), key))
	id, c := theCertificate(t, d)
	assert.Regexp(t, "^[0-9a-f]{16}$", id)
	assert.Equal(t, chain, c.Chain)
	assert.Equal(t, key, c.Key)
	assert.Equal(t, "a", c.Source.Name, "one of the two, whatever their order")
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
			d := withSecrets(t, Options{}, shopHost, secret("s", test.chain, test.key))
			want := []string{"InvalidCertificate: " + test.want + "; not served over TLS: " + shopHost}
			assert.Equal(t, want, problemsOf(d, "Ingress", "prod/s"))
			assert.NotContains(t, fmt.Sprint(want), mark)
			assert.Empty(t, d.Config.Certificates)
			assert.Equal(t, []string{"InvalidCertificate: " + strings.TrimPrefix(test.want, "the Secret prod/s cannot be used: ")},
				problemsOf(d, "Secret", "prod/s"), "on the Secret itself")
		})
	}
	snap := snapshotOf(t, ourClass)
	snap.Ingresses = append(snap.Ingresses, naming(t, "none", shopHost))
	assert.Contains(t, problemsOf(Translate(snap, Options{}), "Ingress", "prod/none"), "InvalidCertificate: there is no Secret prod/none; not served over TLS: "+shopHost)
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
	_, c := theCertificate(t, withSecrets(t, Options{}, shopHost, s))
	assert.Equal(t, keyPEM(t, private), c.Key)
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
			d := withSecrets(t, Options{Now: test.now}, test.host, secret("s", chain, key))
			theCertificate(t, d) // it is served all the same
			var doubts []string
			for _, p := range problemsOf(d, "Ingress", "prod/s") {
				if doubt, is := strings.CutPrefix(p, "DoubtfulCertificate: Secret prod/s: "); is {
					doubts = append(doubts, doubt)
				}
			}
			assert.Equal(t, test.want, doubts)
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
	d := withSecrets(t, refused("8", good), shopHost, bad)
	_, c := theCertificate(t, d)
	assert.Equal(t, chain, c.Chain)
	assert.Equal(t, []string{"Refused: nginx refuses it, and its last good version is served: ee key too small"}, problemsOf(d, "Secret", "prod/s"))

	d = withSecrets(t, refused("8", nil), shopHost, bad)
	assert.Empty(t, d.Config.Certificates)
	assert.Contains(t, problemsOf(d, "Ingress", "prod/s"), "InvalidCertificate: the Secret prod/s is not served: nginx refuses it: ee key too small; not served over TLS: "+shopHost)
	assert.Equal(t, []string{"Refused: nginx refuses it, and nothing of it is served: ee key too small"}, problemsOf(d, "Secret", "prod/s"))

	theCertificate(t, withSecrets(t, refused("6", nil), shopHost, good)) // a refusal is of one version
}
