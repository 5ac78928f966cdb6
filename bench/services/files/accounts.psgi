# Small pages, and logins whose password is hashed in the worker that takes them.
use strict;
use warnings;
use Crypt::PBKDF2;

my $hashes = Crypt::PBKDF2->new(hash_class => 'HMACSHA2', iterations => 6000);
my $stored = $hashes->generate('secret');

sub {
    my $env = shift;
    my $text = 'hello';
    $text = $hashes->validate($stored, 'secret') ? 'in' : 'out' if $env->{PATH_INFO} eq '/login';
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $text], [$text]];
};
