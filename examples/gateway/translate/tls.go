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
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// keyPair is what a Secret has.
type keyPair struct {
	id         string
	chain, key []byte // in PEM
	leaf       *x509.Certificate
}

// certificate adds the certificate of a Secret, and returns its ID. An error says what is wrong
// with it. What is doubtful and served all the same is found by doubts.
func (t *translation) certificate(namespace, secret string) (id string, err error) {
	name := types.NamespacedName{Namespace: namespace, Name: secret}
	found := t.snap.Secrets[name]
	if found == nil {
		return "", fmt.Errorf("there is no Secret %s", name)
	}
	s, _ := t.current(found).(*corev1.Secret)
	if s == nil {
		return "", fmt.Errorf("the Secret %s is not served: %s", name, t.refusal(found))
	}
	t.report(found) // so that the end of its problems is told
	pair, err := keyPairOf(s)
	if err != nil {
		t.problem(found, "InvalidCertificate", "%v", err)
		return "", fmt.Errorf("the Secret %s cannot be used: %w", name, err)
	}
	// Of Secrets with the same content, one is named as the source, whatever their order.
	known, done := t.config.Certificates[pair.id]
	if source := sourceOf(s); !done || strings.Compare(source.Namespace+"/"+source.Name, known.Source.Namespace+"/"+known.Source.Name) < 0 {
		t.config.Certificates[pair.id] = nginx.Certificate{Source: source, Chain: pair.chain, Key: pair.key}
		t.leaves[pair.id] = pair.leaf
	}
	return pair.id, nil
}

// doubts returns what clients of a host will find wrong with a certificate. It is served all the
// same: another one would not be better, and none is worse.
func (t *translation) doubts(id, host string) (all []string) {
	leaf := t.leaves[id]
	if leaf == nil {
		return nil
	}
	if !t.Now.IsZero() && t.Now.After(leaf.NotAfter) {
		all = append(all, "the certificate has expired at "+leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if !t.Now.IsZero() && t.Now.Before(leaf.NotBefore) {
		all = append(all, "the certificate is not valid before "+leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	if host != "" && leaf.VerifyHostname(host) != nil {
		all = append(all, fmt.Sprintf("the certificate is not for the host %q", host))
	}
	return all
}

// parsed is what has been made of each Secret, for as long as somebody has that Secret: snapshots
// share objects, and to check an RSA key takes longer than all else that Translate does with it.
var parsed sync.Map // of outcome, by weak.Pointer[corev1.Secret]

type outcome struct {
	pair *keyPair
	err  error
}

func keyPairOf(s *corev1.Secret) (*keyPair, error) {
	at := weak.Make(s)
	if known, ok := parsed.Load(at); ok {
		return known.(outcome).pair, known.(outcome).err
	}
	pair, err := parse(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if _, known := parsed.LoadOrStore(at, outcome{pair, err}); !known {
		runtime.AddCleanup(s, func(at weak.Pointer[corev1.Secret]) { parsed.Delete(at) }, at)
	}
	return pair, err
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
