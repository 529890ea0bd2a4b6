package translate

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/examples/gateway/nginx"
)

// keyPair is what a Secret has.
type keyPair struct {
	id         string
	source     nginx.Object
	chain, key []byte // in PEM
	leaf       *x509.Certificate
}

// sameKeyPair goes by the ID, which is a hash of all else.
func sameKeyPair(a, b *keyPair) bool { return a.id == b.id && a.source == b.source }

// unusable is what is wrong with a Secret.
type unusable struct {
	secret key
	err    error
}

func (e *unusable) Error() string {
	return fmt.Sprintf("the Secret %s cannot be used: %v", e.secret, e.err)
}

// refusedSecret is a Secret that nginx has refused, or that is held, and of which nginx took no
// version before.
type refusedSecret struct {
	secret key
	why    string
}

func (e *refusedSecret) Error() string {
	return fmt.Sprintf("the Secret %s is not served: %s", e.secret, e.why)
}

// keyPair reads a Secret. To check an RSA key takes longer than all else that is done with it.
func (t *translation) keyPair(k key, found *corev1.Secret) (*keyPair, error) {
	s, _ := t.current(found).(*corev1.Secret)
	if s == nil {
		return nil, &refusedSecret{k, t.refusal(found)}
	}
	pair, err := parse(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, &unusable{k, err}
	}
	pair.source = sourceOf(s)
	return pair, nil
}

// certificate returns the certificate of a Secret, which is wanted. An error says what is wrong
// with it. What is doubtful and served all the same is found by doubts.
func (t *translation) certificate(namespace, secret string) (*keyPair, error) {
	k := key{Namespace: namespace, Name: secret}
	t.certs = append(t.certs, k)
	pair, err := t.pairs.Get(t.r, k)
	if errors.Is(err, derive.ErrNone) {
		return nil, fmt.Errorf("there is no Secret %s", k)
	}
	return pair, errors.Unwrap(err)
}

// isWanted reports whether an object or a host wants the certificate of a Secret.
func (t *translation) isWanted(k key) bool {
	for _, by := range t.wanted {
		if _, err := by.Get(t.r, k); err == nil {
			return true
		}
	}
	return false
}

// certified is a certificate with its ID.
type certified struct {
	id string
	nginx.Certificate
}

// certificateOf is the certificate of a Secret that is wanted.
func (t *translation) certificateOf(k key, _ *corev1.Secret) (c certified, err error) {
	if !t.isWanted(k) {
		return c, derive.Skip
	}
	pair, err := t.pairs.Get(t.r, k)
	if broken, refused := (*unusable)(nil), (*refusedSecret)(nil); errors.As(err, &broken) || errors.As(err, &refused) {
		return c, derive.Skip
	} else if err != nil {
		return c, err
	}
	return certified{pair.id, nginx.Certificate{Source: pair.source, Chain: pair.chain, Key: pair.key}}, nil
}

// secretReport reports on a Secret that is wanted, so that the end of its problems is told, too.
func (t *translation) secretReport(k key, s *corev1.Secret) (Report, error) {
	if !t.isWanted(k) {
		return Report{}, derive.Skip
	}
	t.current(s)
	_, err := t.pairs.Get(t.r, k)
	if broken := (*unusable)(nil); errors.As(err, &broken) {
		t.problem(s, "InvalidCertificate", "%v", broken.err)
	}
	return Report{Object: s, Problems: sorted(t.problems[s.GetUID()])}, nil
}

// date says whether it is not the time of a certificate.
type date struct{ expired, early bool }

// datesOfPairs are those of the certificates that it is not the time of, by their IDs.
func (t *translation) datesOfPairs() (map[string]date, error) {
	all := map[string]date{}
	now, err := t.now.Get(t.r)
	if now.IsZero() {
		return all, err
	}
	for _, p := range t.pairs.All(t.r) {
		if d := (date{now.After(p.leaf.NotAfter), now.Before(p.leaf.NotBefore)}); d != (date{}) {
			all[p.id] = d
		}
	}
	return all, err
}

// doubts returns what clients of a host will find wrong with a certificate. It is served all the
// same: another one would not be better, and none is worse.
func (t *translation) doubts(p *keyPair, host string) (all []string) {
	if p == nil {
		return nil
	}
	dates, _ := t.dates.Get(t.r)
	if dates[p.id].expired {
		all = append(all, "the certificate has expired at "+p.leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if dates[p.id].early {
		all = append(all, "the certificate is not valid before "+p.leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	if host != "" && p.leaf.VerifyHostname(host) != nil {
		all = append(all, fmt.Sprintf("the certificate is not for the host %q", host))
	}
	return all
}

// parse reads a chain and its key. Its errors quote neither. The result is in PEM again, without
// whatever else stood there, and in the one order that TLS knows: the host's certificate first.
func parse(chain, key []byte) (*keyPair, error) {
	switch {
	case len(chain) == 0:
		return nil, errors.New("it has no tls.crt")
	case len(key) == 0:
		return nil, errors.New("it has no tls.key")
	}
	p := &keyPair{}
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate in its tls.crt cannot be read")
		}
		if p.leaf == nil {
			p.leaf = c
		}
		p.chain = append(p.chain, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	if p.leaf == nil {
		return nil, errors.New("its tls.crt has no certificate")
	}
	pair, err := tls.X509KeyPair(p.chain, key)
	if err != nil {
		return nil, errors.New("its tls.key is not the private key of the certificate in its tls.crt")
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, errors.New("its tls.key is of a kind that is not served")
	}
	p.key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	sum := sha256.Sum256(bytes.Join([][]byte{p.chain, p.key}, nil))
	p.id = hex.EncodeToString(sum[:8])
	return p, nil
}
