# Mojolicious: small pages, and invoices whose hundreds of lines a template fills in.
use Mojolicious::Lite -signatures;

get '/' => {text => "hello\n" x 20};
get '/invoice' => {template => 'invoice', lines => [map { {no => $_, text => "item & part $_", price => $_ * 0.37} } 1 .. 700]};
app->log->level('error');
app->start;

__DATA__

@@ invoice.html.ep
<table>
% for my $line (@$lines) {
  <tr><td><%= $line->{no} %></td><td><%= $line->{text} %></td><td><%= sprintf '%.2f', $line->{price} %></td></tr>
% }
</table>
