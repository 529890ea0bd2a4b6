package demo

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// authority signs the certificates of the application.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	issued      int64
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key}
	a.certificate = &x509.Certificate{
		Subject: pkix.Name{CommonName: "gateway demonstration"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	text, err := a.sign(a.certificate, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	a.certificate, err = x509.ParseCertificate(text)
	return a, err
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PublicKey) ([]byte, error) {
	a.issued++
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(a.issued), time.Now().Add(-time.Hour), time.Now().AddDate(0, 1, 0)
	return x509.CreateCertificate(rand.Reader, c, a.certificate, key, a.key)
}

// secret makes a new certificate for a host.
func (a *authority) secret(host string) (*corev1.Secret, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	chain, failed := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}}, &key.PublicKey)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-tls"},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		},
	}, nil
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}
