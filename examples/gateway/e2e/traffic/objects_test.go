package traffic

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const className = "kates"

// to is a path that goes to a Service.
type to struct{ path, service string }

// ingress returns an Ingress of a host.
func ingress(name, host string, paths ...to) *networkingv1.Ingress {
	rule := networkingv1.IngressRule{Host: host}
	rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
	for _, p := range paths {
		rule.HTTP.Paths = append(rule.HTTP.Paths, ingressPath(p))
	}
	in := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: new(className), Rules: []networkingv1.IngressRule{rule}}}
	in.APIVersion, in.Kind, in.Name = "networking.k8s.io/v1", "Ingress", name
	return in
}

func ingressPath(p to) networkingv1.HTTPIngressPath {
	backend := &networkingv1.IngressServiceBackend{Name: p.service, Port: networkingv1.ServiceBackendPort{Number: 80}}
	return networkingv1.HTTPIngressPath{Path: p.path, PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: backend}}
}

func withTLS(in *networkingv1.Ingress, secret string) *networkingv1.Ingress {
	in.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{in.Spec.Rules[0].Host}, SecretName: secret}}
	return in
}

const gatewayName = "web"

// webGateway returns a Gateway with HTTP.
func webGateway() *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{Spec: gatewayv1.GatewaySpec{
		GatewayClassName: className,
		Listeners:        []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
	}}
	g.APIVersion, g.Kind, g.Name = gatewayv1.GroupVersion.String(), "Gateway", gatewayName
	return g
}

// route returns an HTTPRoute of a host.
func route(name, host string, paths ...to) *gatewayv1.HTTPRoute {
	r := &gatewayv1.HTTPRoute{}
	r.APIVersion, r.Kind, r.Name = gatewayv1.GroupVersion.String(), "HTTPRoute", name
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: gatewayName}}
	r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(host)}
	for _, p := range paths {
		backend := gatewayv1.HTTPBackendRef{}
		backend.Name, backend.Port = gatewayv1.ObjectName(p.service), new(gatewayv1.PortNumber(80))
		r.Spec.Rules = append(r.Spec.Rules, gatewayv1.HTTPRouteRule{
			Matches:     []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: new(p.path)}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{backend},
		})
	}
	return r
}

// authority signs certificates.
type authority struct {
	t           *testing.T
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	issued      int64
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{t: t, key: key}
	a.certificate = &x509.Certificate{
		Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate, err = x509.ParseCertificate(a.sign(a.certificate, &key.PublicKey))
	require.NoError(t, err)
	return a
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PublicKey) []byte {
	a.issued++
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(a.issued), time.Now().Add(-time.Hour), time.Now().AddDate(0, 1, 0)
	text, err := x509.CreateCertificate(rand.Reader, c, a.certificate, key, a.key)
	require.NoError(a.t, err)
	return text
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// secret makes a new certificate for hosts. Its serial number is that of the last one, and 1.
func (a *authority) secret(name string, hosts ...string) *corev1.Secret {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	chain := a.sign(&x509.Certificate{DNSNames: hosts}, &key.PublicKey)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	s := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
	s.APIVersion, s.Kind, s.Name = "v1", "Secret", name
	return s
}
