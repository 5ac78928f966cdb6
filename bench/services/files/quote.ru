# A Rack application that computes for each request.
run lambda { |_env|
  sum = 0
  850_000.times { |i| sum += i % 7 }
  [200, { "content-type" => "text/plain" }, ["#{sum}\n"]]
}
