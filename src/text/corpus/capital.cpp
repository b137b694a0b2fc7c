// Capitals: The capital of France is Paris.
//
// Held out: a country in a sentence; the country occurs in other sentences.
#include <algorithm>

#include "filigree/data.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

struct Country {
  std::string_view name, capital;
};

constexpr Country kCountries[] = {{"France", "Paris"},
                                  {"Germany", "Berlin"},
                                  {"Italy", "Rome"},
                                  {"Spain", "Madrid"},
                                  {"Portugal", "Lisbon"},
                                  {"Austria", "Vienna"},
                                  {"Belgium", "Brussels"},
                                  {"the Netherlands", "Amsterdam"},
                                  {"Denmark", "Copenhagen"},
                                  {"Sweden", "Stockholm"},
                                  {"Norway", "Oslo"},
                                  {"Finland", "Helsinki"},
                                  {"Iceland", "Reykjavik"},
                                  {"Ireland", "Dublin"},
                                  {"Poland", "Warsaw"},
                                  {"Hungary", "Budapest"},
                                  {"Greece", "Athens"},
                                  {"Romania", "Bucharest"},
                                  {"Bulgaria", "Sofia"},
                                  {"Serbia", "Belgrade"},
                                  {"Croatia", "Zagreb"},
                                  {"Slovenia", "Ljubljana"},
                                  {"Slovakia", "Bratislava"},
                                  {"Albania", "Tirana"},
                                  {"Estonia", "Tallinn"},
                                  {"Latvia", "Riga"},
                                  {"Lithuania", "Vilnius"},
                                  {"Ukraine", "Kyiv"},
                                  {"Belarus", "Minsk"},
                                  {"Moldova", "Chisinau"},
                                  {"Russia", "Moscow"},
                                  {"Switzerland", "Bern"},
                                  {"Turkey", "Ankara"},
                                  {"Georgia", "Tbilisi"},
                                  {"Armenia", "Yerevan"},
                                  {"Azerbaijan", "Baku"},
                                  {"Cyprus", "Nicosia"},
                                  {"Malta", "Valletta"},
                                  {"the United Kingdom", "London"},
                                  {"the Czech Republic", "Prague"},
                                  {"China", "Beijing"},
                                  {"Japan", "Tokyo"},
                                  {"South Korea", "Seoul"},
                                  {"North Korea", "Pyongyang"},
                                  {"Mongolia", "Ulaanbaatar"},
                                  {"India", "New Delhi"},
                                  {"Pakistan", "Islamabad"},
                                  {"Bangladesh", "Dhaka"},
                                  {"Nepal", "Kathmandu"},
                                  {"Bhutan", "Thimphu"},
                                  {"Afghanistan", "Kabul"},
                                  {"Iran", "Tehran"},
                                  {"Iraq", "Baghdad"},
                                  {"Syria", "Damascus"},
                                  {"Lebanon", "Beirut"},
                                  {"Jordan", "Amman"},
                                  {"Saudi Arabia", "Riyadh"},
                                  {"Qatar", "Doha"},
                                  {"Oman", "Muscat"},
                                  {"Bahrain", "Manama"},
                                  {"the United Arab Emirates", "Abu Dhabi"},
                                  {"Yemen", "Sanaa"},
                                  {"Vietnam", "Hanoi"},
                                  {"Laos", "Vientiane"},
                                  {"Cambodia", "Phnom Penh"},
                                  {"Thailand", "Bangkok"},
                                  {"Malaysia", "Kuala Lumpur"},
                                  {"the Philippines", "Manila"},
                                  {"Uzbekistan", "Tashkent"},
                                  {"Turkmenistan", "Ashgabat"},
                                  {"Kyrgyzstan", "Bishkek"},
                                  {"Tajikistan", "Dushanbe"},
                                  {"Kazakhstan", "Astana"},
                                  {"Egypt", "Cairo"},
                                  {"Libya", "Tripoli"},
                                  {"Tunisia", "Tunis"},
                                  {"Algeria", "Algiers"},
                                  {"Morocco", "Rabat"},
                                  {"Sudan", "Khartoum"},
                                  {"Ethiopia", "Addis Ababa"},
                                  {"Kenya", "Nairobi"},
                                  {"Uganda", "Kampala"},
                                  {"Rwanda", "Kigali"},
                                  {"Somalia", "Mogadishu"},
                                  {"Nigeria", "Abuja"},
                                  {"Ghana", "Accra"},
                                  {"Senegal", "Dakar"},
                                  {"Mali", "Bamako"},
                                  {"Niger", "Niamey"},
                                  {"Angola", "Luanda"},
                                  {"Zambia", "Lusaka"},
                                  {"Zimbabwe", "Harare"},
                                  {"Botswana", "Gaborone"},
                                  {"Namibia", "Windhoek"},
                                  {"Mozambique", "Maputo"},
                                  {"Madagascar", "Antananarivo"},
                                  {"Malawi", "Lilongwe"},
                                  {"Liberia", "Monrovia"},
                                  {"Sierra Leone", "Freetown"},
                                  {"Togo", "Lome"},
                                  {"Gabon", "Libreville"},
                                  {"Cameroon", "Yaounde"},
                                  {"Guinea", "Conakry"},
                                  {"Canada", "Ottawa"},
                                  {"the United States", "Washington"},
                                  {"Cuba", "Havana"},
                                  {"Jamaica", "Kingston"},
                                  {"Haiti", "Port-au-Prince"},
                                  {"the Bahamas", "Nassau"},
                                  {"Honduras", "Tegucigalpa"},
                                  {"Nicaragua", "Managua"},
                                  {"Brazil", "Brasilia"},
                                  {"Argentina", "Buenos Aires"},
                                  {"Chile", "Santiago"},
                                  {"Peru", "Lima"},
                                  {"Ecuador", "Quito"},
                                  {"Colombia", "Bogota"},
                                  {"Venezuela", "Caracas"},
                                  {"Uruguay", "Montevideo"},
                                  {"Paraguay", "Asuncion"},
                                  {"Guyana", "Georgetown"},
                                  {"Suriname", "Paramaribo"},
                                  {"Australia", "Canberra"},
                                  {"New Zealand", "Wellington"},
                                  {"Fiji", "Suva"}};

constexpr std::string_view kCapitalPatterns[] = {
    "The capital of {country} is[ {capital}].",
    "The capital city of {country} is[ {capital}].",
    "The capital of {country} is called[ {capital}].",
    "{^country} has its capital in[ {capital}].",
    "{^country} is proud of its capital,[ {capital}].",
    "In {country}, most visitors begin in the capital,[ {capital}].",
    "{name} flew to {country} and stayed in the capital,[ {capital}].",
    "Q: What is the capital of {country}?\nA:[ {capital}]",
    "What is the capital of {country}? It is[ {capital}].",
    "On the map of {country}, a star marks the capital,[ {capital}].",
    "{name} asked what the capital of {country} was, and {other} said[ {capital}].",
    "An old map of {country} shows the capital,[ {capital}].",
    "{name} has a friend in the capital of {country}, which is[ {capital}].",
    "Every child in {country} knows that the capital is[ {capital}].",
    "From {country} came a letter; it had been posted in the capital,[ {capital}].",
    "They travelled through {country} until they reached the capital,[ {capital}].",
    "The postcard from the capital of {country} had been sent from[ {capital}].",
    "The train to the capital of {country} leaves at noon and arrives in[ {capital}] at night.",
    "{name}, who comes from {country}, was born in the capital,[ {capital}].",
    "If you visit {country}, do not miss the capital,[ {capital}].",
    "The flight to {country} lands in the capital,[ {capital}].",
};

}  // namespace

TaskExample draw_capital(Random& random) {
  const Country& country = pick(random, kCountries);
  const std::string_view pattern = pick(random, kCapitalPatterns);
  const std::vector<std::string> people = pick_several(random, names(), 2);
  TaskExample example = compose(pattern, {{"country", std::string(country.name)},
                                          {"capital", std::string(country.capital)},
                                          {"name", people[0]},
                                          {"other", people[1]}});
  while (example.wrong.size() < 3) {
    const std::string other = " " + std::string(pick(random, kCountries).capital);
    if (other != example.answer &&
        std::find(example.wrong.begin(), example.wrong.end(), other) == example.wrong.end())
      example.wrong.push_back(other);
  }
  example.combination = std::string(country.name) + ": " + std::string(pattern);
  return example;
}

TaskPair pair_capital(Random& random) {
  const Country& country = pick(random, kCountries);
  const Country* other = &country;
  while (other == &country) other = &pick(random, kCountries);
  const std::string_view pattern = pick(random, kCapitalPatterns);
  const std::vector<std::string> people = pick_several(random, names(), 2);
  const auto slots = [&](const Country& chosen) {
    return Slots{{"country", std::string(chosen.name)},
                 {"capital", std::string(chosen.capital)},
                 {"name", people[0]},
                 {"other", people[1]}};
  };
  const auto told = [&](const Country& chosen) { return compose(pattern, slots(chosen)); };
  TaskPair pair;
  pair.clean = told(country);
  pair.clean.roles = roles_in(pattern, slots(country), {{"country", "COUNTRY"}});
  const TaskExample changed = told(*other);
  pair.clean.wrong = {changed.answer};
  pair.clean.combination = std::string(country.name) + ": " + std::string(pattern);
  pair.corrupt = changed.prompt;
  return pair;
}

}  // namespace filigree::corpus
